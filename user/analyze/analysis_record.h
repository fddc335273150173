/* SPDX-License-Identifier: GPL-2.0-only */
/* An account of where the cycles go, as a record. */
#ifndef NHMTAP_ANALYSIS_RECORD_H
#define NHMTAP_ANALYSIS_RECORD_H

#include <jansson.h>

#include "analyze/account.h"
#include "analyze/measure.h"

/* Makes the record, except for what tells when and in what it was counted. `checked` has an element for each
 * identity of the tree. Returns a new reference. */
json_t *analysis_record(const struct tree *tree, const struct account *account,
			const struct checked_identity *checked);

#endif
