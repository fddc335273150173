/* SPDX-License-Identifier: GPL-2.0-only */
/* What a process does that writes the files of an output: scribe.h. */
#pragma once

/* Does jobs until the socket is closed. `place`: a struct scribe_place. */
void scribe_serve(int socket, const void *place);
