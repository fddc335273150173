/* SPDX-License-Identifier: GPL-2.0-only */
/* Lines of source files, as far as they are there. */
#pragma once

struct source_texts;

struct source_texts *source_texts_new(void);
void source_texts_release(struct source_texts *texts);

/* The text of a line of a source file that the program (`module`) names; NULL with the reason, which is valid
 * as long as the texts. `*why` is also set if the text may be wrong: the file is newer than the program. */
const char *source_text(struct source_texts *texts, const char *module, const char *file, unsigned int line,
			const char **why);
