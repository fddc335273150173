// SPDX-License-Identifier: GPL-2.0-only
/* To be preloaded: uname() says that this is the kernel RELEASE. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

int uname(struct utsname *names)
{
	int (*unchanged)(struct utsname *) = (int (*)(struct utsname *))dlsym(RTLD_NEXT, "uname");
	int err = unchanged(names);

	if (!err)
		snprintf(names->release, sizeof(names->release), "%s", getenv("RELEASE"));
	return err;
}
