// SPDX-License-Identifier: GPL-2.0-only
#include "base/late.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/array.h"

/* All functions that are called. If one is missing here, the linker reports it. */
#define LIBCURL(X)                                                                                           \
	X(curl_easy_cleanup)                                                                                 \
	X(curl_easy_getinfo)                                                                                 \
	X(curl_easy_init)                                                                                    \
	X(curl_easy_reset)                                                                                   \
	X(curl_easy_setopt)                                                                                  \
	X(curl_easy_strerror)                                                                                \
	X(curl_global_init)                                                                                  \
	X(curl_mime_addpart)                                                                                 \
	X(curl_mime_data)                                                                                    \
	X(curl_mime_filename)                                                                                \
	X(curl_mime_free)                                                                                    \
	X(curl_mime_init)                                                                                    \
	X(curl_mime_name)                                                                                    \
	X(curl_multi_add_handle)                                                                             \
	X(curl_multi_cleanup)                                                                                \
	X(curl_multi_info_read)                                                                              \
	X(curl_multi_init)                                                                                   \
	X(curl_multi_remove_handle)                                                                          \
	X(curl_multi_setopt)                                                                                 \
	X(curl_multi_socket_action)                                                                          \
	X(curl_slist_append)                                                                                 \
	X(curl_slist_free_all)                                                                               \
	X(curl_url)                                                                                          \
	X(curl_url_cleanup)                                                                                  \
	X(curl_url_set)                                                                                      \
	X(curl_url_strerror)                                                                                 \
	X(curl_version_info)
#define LIBMICROHTTPD(X)                                                                                     \
	X(MHD_add_connection)                                                                                \
	X(MHD_add_response_header)                                                                           \
	X(MHD_create_response_from_buffer)                                                                   \
	X(MHD_destroy_response)                                                                              \
	X(MHD_get_connection_info)                                                                           \
	X(MHD_get_daemon_info)                                                                               \
	X(MHD_get_timeout)                                                                                   \
	X(MHD_queue_response)                                                                                \
	X(MHD_run)                                                                                           \
	X(MHD_start_daemon)                                                                                  \
	X(MHD_stop_daemon)                                                                                   \
	X(MHD_get_version)
#define LIBSECCOMP(X)                                                                                        \
	X(seccomp_init)                                                                                      \
	X(seccomp_load)                                                                                      \
	X(seccomp_release)                                                                                   \
	X(seccomp_rule_add)                                                                                  \
	X(seccomp_version)

/* Defines a function of this name that jumps to the library's function. The arguments stay in their
 * registers, so they need not be known here. */
#define FUNCTION(name)                                                                                       \
	__attribute__((visibility("hidden"))) void *late_##name;                                             \
	__asm__(".pushsection .text\n"                                                                       \
		".globl " #name "\n"                                                                         \
		".hidden " #name "\n"                                                                        \
		".type " #name ", @function\n" #name ": jmp *late_" #name "(%rip)\n"                         \
		".size " #name ", . - " #name "\n"                                                           \
		".popsection");

LIBCURL(FUNCTION)
LIBMICROHTTPD(FUNCTION)
LIBSECCOMP(FUNCTION)

struct function {
	const char *name;
	void **address;
};

#define ROW(name) {#name, &late_##name},

static const char *load(bool *loaded, const char *library, const struct function *functions, size_t nr)
{
	void *handle;

	if (*loaded)
		return NULL;
	handle = dlopen(library, RTLD_NOW);
	if (!handle)
		return dlerror();
	for (size_t i = 0; i < nr; i++) {
		*functions[i].address = dlsym(handle, functions[i].name);
		if (!*functions[i].address)
			return dlerror();
	}
	*loaded = true;
	return NULL;
}

const char *late_libcurl(void)
{
	static const struct function functions[] = {LIBCURL(ROW)};
	static bool loaded;

	return load(&loaded, LIBCURL_SONAME, functions, ARRAY_SIZE(functions));
}

const char *late_libmicrohttpd(void)
{
	static const struct function functions[] = {LIBMICROHTTPD(ROW)};
	static bool loaded;

	return load(&loaded, LIBMICROHTTPD_SONAME, functions, ARRAY_SIZE(functions));
}

const char *late_libseccomp(void)
{
	static const struct function functions[] = {LIBSECCOMP(ROW)};
	static bool loaded;

	return load(&loaded, LIBSECCOMP_SONAME, functions, ARRAY_SIZE(functions));
}
