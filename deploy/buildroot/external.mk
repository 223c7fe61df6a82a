# make BR2_EXTERNAL=PATH/deploy/buildroot menuconfig
include $(sort $(wildcard $(BR2_EXTERNAL_STILLCORE_PATH)/package/*/*.mk))
