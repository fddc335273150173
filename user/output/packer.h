/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compresses the records of a file, in a thread of its own: they are written into a pipe, and what comes out
 * of it becomes frames of whole records. A frame is written when it is large, or a fifth of a second after
 * its first record.
 */
#pragma once

#include <stdbool.h>

struct packer;

/* Takes over a file that is open for writing. Its contents are kept if `append`, else they are removed before
 * the first frame is written. Returns the descriptor that records are to be written to, or -1 with errno. The
 * caller owns *packer, and closes the descriptor itself. */
int packer_start(struct packer **packer, int file, bool append);

/* What is written is no lines: what comes behind the last line feed is a part of the file as well. To be
 * called before anything is written. */
void packer_take_bytes(struct packer *packer);

/* The file that was given last. It is open until packer_end(). */
int packer_file(const struct packer *packer);

/*
 * Has what comes from now on written to another file, which is open for writing and whose contents are kept;
 * also what came before, if the former file has no room for it. `former` is the descriptor that records were
 * written to. Returns the one that they are to be written to now, and closes `former` if that is another; -1
 * with errno: nothing has changed. The packer takes the file over, and closes the former one.
 */
int packer_turn(struct packer *packer, int file, int former);

/* If nothing was written at the end, the old contents go nevertheless, unless they are kept, and an empty
 * file gets an empty frame. */
void packer_begin(struct packer *packer);

/* The errno of writing the file while it can't be written, but may be later: no room; else 0. */
int packer_stopped(const struct packer *packer);

/* The errno of writing the file, if it has failed for good; else 0. */
int packer_error(const struct packer *packer);

/* Writes what is in the pipe, which nobody may write to any more, and closes the file. Returns 0, or an
 * errno: ETIMEDOUT if that takes longer than some seconds. NULL: does nothing. */
int packer_end(struct packer *packer);
