// SPDX-License-Identifier: GPL-2.0-only
#include "base/late.h"

#include <dlfcn.h>
#include <string.h>

const char *late_load(struct late *library)
{
	void *handle;

	if (library->loaded)
		return NULL;
	if (!library->soname)
		return "this program was built without it";
	handle = dlopen(library->soname, RTLD_NOW);
	if (!handle)
		return dlerror();
	for (size_t i = 0; i < library->nr; i++) {
		*library->functions[i].address = dlsym(handle, library->functions[i].name);
		if (!*library->functions[i].address)
			return dlerror();
	}
	library->loaded = true;
	return NULL;
}

int late_need(struct late *library, const char *option, const char *value, struct refusal *refusal)
{
	const char *why = late_load(library);

	if (!why)
		return 0;
	refuse(refusal, STATUS_REFUSED, "%s '%.300s'", option, value);
	if (!library->soname) {
		because(refusal, "this nhmtap was built without %s", library->name);
		return instead(refusal, "build it with %s: make, with no WITHOUT=%s", library->name,
			       library->name + strlen("lib"));
	}
	because(refusal, "%s", why);
	return instead(refusal, "install %s: apt-get install %s", library->name, library->package);
}
