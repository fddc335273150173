// The tables of designs and models.

#include "nhm_model.h"
#include "nhm_mem.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace nhm {

#define NHM_MODEL(...)
#define NHM_DESIGN(name, general, alone, width, capabilities, pebs_enable, record, lbr, from, to, shared, bits, off_core, l3_bus, netburst) \
  static const Design name = { #name, general, alone, width, capabilities, pebs_enable, record, lbr, from, to, shared, bits, off_core, l3_bus, netburst };
#include "nhm_models.inc"
#undef NHM_MODEL
#undef NHM_DESIGN

static const Model models[] = {
#define NHM_DESIGN(...)
#define NHM_MODEL(name, signature, design, set, missing, mask, local, remote, clean, hitm, bits, run, microcode, brand) \
  { #name, signature, &design, set, missing, mask, 1u << local, 1u << remote, 1u << clean, hitm, bits, run, microcode, brand },
#include "nhm_models.inc"
#undef NHM_DESIGN
#undef NHM_MODEL
};

static Model find() {
  const char *name = getenv("NHM_MODEL"), *microcode = getenv("NHM_MICROCODE");
  Model found = models[0];
  for (const Model &m : models)
    if (name && !strcmp(m.name, name)) found = m;
  if (microcode) found.microcode = strtoul(microcode, NULL, 0);
  return found;
}

const Model &model() {
  static const Model chosen = find();
  return chosen;
}

static Perfmon read_perfmon() {
  const Design &d = design();
  const char *by_hand = getenv("NHM_PERFMON");
  const unsigned general = topology.threads > 1 ? d.general : d.general_alone;
  // Seven architectural events are enumerated. The version is 3, or 2 without AnyThread.
  Perfmon p = { 7u << 24 | d.width << 16 | general << 8 | (d.off_core ? 3u : 2u), model().missing_events, 0x603 };
  if (d.netburst) p = { 0, 0, 0 };
  if (by_hand) sscanf(by_hand, "%x,%x,%x", &p.eax, &p.ebx, &p.edx);
  return p;
}

const Perfmon &perfmon() {
  static const Perfmon found = read_perfmon();
  return found;
}

uint64_t firmware_counters() {
  const char *left = getenv("NHM_FIRMWARE");
  return left ? strtoull(left, NULL, 0) : 0;
}

} // namespace nhm
