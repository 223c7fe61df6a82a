# The static program of a release, as it is. In local.conf, STILLCORE_SITE names where its tarballs
# are, and STILLCORE_SHA256 is the sum of the one for the machine (SHA256SUMS of the release).
SUMMARY = "Find out what disturbs a CPU core, and isolate it"
LICENSE = "Apache-2.0 | MIT"
LIC_FILES_CHKSUM = "file://LICENSE-APACHE;md5=3b83ef96387f14655fc854ddc3c6bd57 \
                    file://LICENSE-MIT;md5=236361f17765aab022496f8c0c34c8cf"

STILLCORE_SITE ?= "file://${TOPDIR}/stillcore"
STILLCORE_SHA256 ?= ""
SRC_URI = "${STILLCORE_SITE}/stillcore-${PV}-${TARGET_ARCH}-linux.tar.gz"
SRC_URI[sha256sum] = "${STILLCORE_SHA256}"
S = "${WORKDIR}/stillcore-${PV}-${TARGET_ARCH}-linux"

COMPATIBLE_HOST = "(x86_64|aarch64).*-linux"
# One file that needs no library of the image, stripped when it was released.
INSANE_SKIP:${PN} += "already-stripped"
INHIBIT_PACKAGE_STRIP = "1"
INHIBIT_SYSROOT_STRIP = "1"

inherit systemd

# Nothing isolates CPUs unless somebody enables it.
SYSTEMD_SERVICE:${PN} = "stillcore-isolate.service"
SYSTEMD_AUTO_ENABLE = "disable"
CONFFILES:${PN} = "${sysconfdir}/stillcore/config.toml"
FILES:${PN} += "${datadir}/bash-completion"

do_configure[noexec] = "1"
do_compile[noexec] = "1"

do_install() {
    install -D -m 0755 ${S}/stillcore ${D}${bindir}/stillcore
    install -D -m 0644 ${S}/config.toml ${D}${sysconfdir}/stillcore/config.toml
    install -D -m 0644 ${S}/completions/stillcore.bash ${D}${datadir}/bash-completion/completions/stillcore
    install -d ${D}${mandir}/man1
    install -m 0644 ${S}/man/*.1 ${D}${mandir}/man1
    if ${@bb.utils.contains('DISTRO_FEATURES', 'systemd', 'true', 'false', d)}; then
        install -D -m 0644 ${S}/systemd/stillcore-isolate.service ${D}${systemd_system_unitdir}/stillcore-isolate.service
    fi
}
