# SPDX-License-Identifier: GPL-2.0-only
# A container image and Debian packages. The packages' source is assembled below O, with debian/ in
# its top folder.

.PHONY: image image-machine deb deb-machine check-deb

packaging  := user/packaging
image      := $(abspath $(O))/image
machine_image := $(abspath $(O))/image-machine
deb        := $(abspath $(O))/deb/built
deb_source  = $(deb)/nhmtap-$(version)

# The files have the time of the last commit, unless SOURCE_DATE_EPOCH is set. The screen of `top` stays out: its library
# needs descriptions of terminals, too, and a container's output is read elsewhere.
image: $(O)/.image-packages $(O)/nhmtap $(O)/nhmtap-known ## build: make a container's image, an OCI layout in O/image/oci, and a bundle for runc beside it
	$(call say,IMAGE,$(image)/oci)
	$(call make_image,$(image))

# Nothing of it needs privileges, so it runs in any container. Its driver finds the machine beside the program.
image-machine: $(O)/.image-packages $(O)/nhmtap $(O)/nhmtap-known machine ## build: make an image with the emulated machine, for jobs that count without a PMU, in O/image-machine
	$(call say,IMAGE,$(machine_image)/oci)
	$(call make_image,$(machine_image),MACHINE='$(MAKE) -s -C $(CURDIR) O=$(O) NHM_BUILD=$(NHM_BUILD) prefix=/usr install-machine')

# OUT, and what is set for it.
make_image = $(Q)SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct 2> /dev/null || echo 0)} $(2) \
	$(packaging)/image/make-image $(1) $(version) $(O)/nhmtap $(O)/nhmtap-known \
	$(foreach library,$(filter-out ncursesw capstone,$(late)),$(shell $(CC) -print-file-name=$(call soname,$(library)))) \
	> $(1).log 2>&1 || { tail -30 $(1).log >&2; exit 1; }

# gcc and libc6-dev are left out of Build-Depends, because they are build-essential.
deb: $(O)/.build-packages $(O)/.deb-packages ## build: build the Debian packages, into O/deb/built
	$(Q)rm -rf $(deb) && mkdir -p $(deb_source)
	$(Q)git ls-files -z | xargs -0 cp --parents -t $(deb_source)
	$(Q)mv $(deb_source)/$(packaging)/debian $(deb_source)/debian
	$(Q)needed=$$(sed -n '/^\[\(build\|curl\|microhttpd\|seccomp\|ncurses\|capstone\)\]/,/^$$/s/^\([^ |]\+\) *|.*/\1/p' $(packaging)/packages.txt | grep -vx -e gcc -e libc6-dev | paste -sd,) && \
	sed -i "s/@version@/$(version)/; s/@build-depends@/$$needed/" $(deb_source)/debian/changelog $(deb_source)/debian/control
	$(call say,DEB,$(deb))
	$(Q)cd $(deb_source) && env -u MAKEFLAGS -u MAKELEVEL -u MFLAGS -u O -u V -u CI dpkg-buildpackage -us -uc > $(deb)/log 2>&1 || { tail -30 $(deb)/log >&2; exit 1; }
	$(Q)cd $(deb) && ls *.deb *.dsc

# Apart from the others, which a machine without the kernels' archive can build too.
deb-machine: $(O)/.deb-machine-packages machine ## build: build a Debian package of the emulated Nehalem, into O/deb/machine
	$(Q)rm -rf $(O)/deb/machine
	$(Q)$(MAKE) --no-print-directory -s install-machine DESTDIR=$(abspath $(O))/deb/machine/root prefix=/usr
	$(call say,DEB,$(O)/deb/machine)
	$(Q)$(packaging)/machine-deb $(O)/deb/machine/root $(version) $(O)/deb/machine/nhmtap-machine_$(version)_amd64.deb > $(O)/deb/machine/log
	$(Q)rm -r $(O)/deb/machine/root && cd $(O)/deb/machine && ls *.deb

# Builds twice, in different folders and time zones. The Debian system in chroot is kept for the
# next time.
check-deb: $(O)/.test-packages deb ## check: build the Debian packages twice, compare, judge, install, use and purge them
	$(Q)TZ=Pacific/Kiritimati $(MAKE) --no-print-directory O=$(O)/deb/elsewhere deb
	NHMTAP_DEB=$(deb) NHMTAP_DEB_AGAIN=$(abspath $(O))/deb/elsewhere/deb/built NHMTAP_CHROOT=$(abspath $(O))/deb/chroot \
		$(pytest) -n 0 --reruns 0 --timeout 1200 $(T) tests/deb/check_deb.py
