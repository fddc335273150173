/* SPDX-License-Identifier: GPL-2.0-only */
/* An account of where the cycles go, as a record. */
#pragma once

#include <jansson.h>

#include "analyze/account.h"
#include "analyze/measure.h"
#include "stat/expectation_record.h"

/* Makes the record, except for what tells when and in what it was counted. `checked` has an element for each
 * identity of the tree. Returns a new reference. */
json_t *analysis_record(const struct tree *tree, const struct account *account,
			const struct checked_identity *checked);

/* Parses a limit of a share, as expectations_add() does. It is in percent: a bare number might be meant as
 * the part of 1 that the record has. */
struct expectation *share_expectation_add(struct expectations *expectations, const char *text,
					  struct refusal *refusal);

/* Makes the record of a limit of a share, raises the status by its outcome, and says on stderr what was not
 * met, unless `quiet`. The finding is in percent. Returns a new reference. */
json_t *share_expectation_record(const struct expectation *expectation,
				 const struct expected_finding *finding, bool quiet, enum status *status);
