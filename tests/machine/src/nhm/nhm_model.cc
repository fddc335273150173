// The table of models.

#include "nhm_model.h"
#include <cstdlib>
#include <cstring>

namespace nhm {

static const Model models[] = {
#define NHM_MODEL(name, signature, set, missing, local, remote, clean, hitm, brand) \
  { #name, signature, set, missing, 1u << local, 1u << remote, 1u << clean, hitm, brand },
#include "nhm_models.inc"
#undef NHM_MODEL
};

static const Model &find() {
  const char *name = getenv("NHM_MODEL");
  for (const Model &m : models)
    if (name && !strcmp(m.name, name)) return m;
  return models[0];
}

const Model &model() {
  static const Model &chosen = find();
  return chosen;
}

} // namespace nhm
