################################################################################
#
# stillcore: the static program of a release, as it is
#
################################################################################

STILLCORE_VERSION = 0.1.0
STILLCORE_SOURCE = stillcore-$(STILLCORE_VERSION)-$(ARCH)-linux.tar.gz
STILLCORE_SITE = $(call qstrip,$(BR2_PACKAGE_STILLCORE_SITE))
ifneq ($(filter /%,$(STILLCORE_SITE)),)
STILLCORE_SITE_METHOD = file
endif
STILLCORE_LICENSE = Apache-2.0 or MIT
STILLCORE_LICENSE_FILES = LICENSE-APACHE LICENSE-MIT

# Without STRIP: it was stripped when it was released. Nothing is enabled or started.
define STILLCORE_INSTALL_TARGET_CMDS
	$(INSTALL) -D -m 0755 $(@D)/stillcore $(TARGET_DIR)/usr/bin/stillcore
	$(INSTALL) -D -m 0644 $(@D)/config.toml $(TARGET_DIR)/etc/stillcore/config.toml
endef

define STILLCORE_INSTALL_INIT_SYSTEMD
	$(INSTALL) -D -m 0644 $(@D)/systemd/stillcore-isolate.service \
		$(TARGET_DIR)/usr/lib/systemd/system/stillcore-isolate.service
endef

$(eval $(generic-package))
