/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a run that was killed may leave at the end of its file: the begin of a record, or of a frame. Whoever
 * reads lines or frames gets no further than there, so a run that appends to the file removes it first. What
 * is neither stays.
 */
#pragma once

/* Files that are open for writing. What can't be read, or is no regular file, is left alone. */
void torn_record_remove(int file);
void torn_frame_remove(int file);
