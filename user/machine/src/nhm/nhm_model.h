// The differences between the processors that the machine models.

#ifndef NHM_MODEL_H
#define NHM_MODEL_H

#include <cstdint>

namespace nhm {

enum ModelSet : uint8_t {
#include "nhm_sets.inc"
};

// What models of one design have in common: a row of nhm_models.inc.
struct Design {
  const char *name;
  unsigned general, general_alone;   // counters of a thread; of a thread alone on its core
  unsigned width;                    // of a counter, in bits
  uint64_t capabilities;             // IA32_PERF_CAPABILITIES
  uint64_t pebs_enable;              // the bits of IA32_PEBS_ENABLE that may be set
  unsigned pebs_record;              // bytes
  unsigned n_lbr;
  uint32_t lbr_from, lbr_to;         // MSRs
  bool     shared_registers;         // the threads of a core share OFFCORE_RSP, LBR_SELECT and the threshold
  bool     access_bits;              // load latency says which accesses missed the TLB or were locked
  bool     off_core;                 // OFFCORE_RSP_0 and 1, the latency threshold and LBR_SELECT exist
  bool     l3_bus;                   // nhm_l3bus.h
  bool     netburst;                 // 18 counters with an ESCR and a CCCR each, no CPUID.0AH
};

struct Model {
  const char *name;
  uint32_t signature;
  const Design *design;
  ModelSet set;
  uint32_t missing_events;           // CPUID.0AH EBX
  uint64_t offcore_mask;             // the bits of OFFCORE_RSP that may be set
  uint32_t local_dram, remote_dram, remote_clean;   // of those, on a Nehalem or Westmere
  bool     remote_hitm;              // data source 0x9 and response bit 11 exist
  unsigned package_bits;             // of an APIC id, below the package number; 0: as few as needed
  unsigned cores_in_a_run;           // after so many the core numbers continue at 8; 0: no gap
  uint32_t microcode;                // its revision; 0: the machine reports none
  const char *brand;
};

// The model that NHM_MODEL names, or a Nehalem-EP if no model has that name; NHM_MICROCODE
// replaces its revision.
const Model &model();
inline const Design &design() { return *model().design; }

// CPUID.0AH: the design's, or the value of NHM_PERFMON.
struct Perfmon { uint32_t eax, ebx, edx; };
const Perfmon &perfmon();
inline unsigned general_counters() { return perfmon().eax >> 8 & 0xFF; }
// What firmware left in IA32_FIXED_CTR_CTRL: the value of NHM_FIRMWARE, 0 by default.
uint64_t firmware_counters();
inline unsigned counter_width() { return perfmon().eax >> 16 & 0xFF; }

} // namespace nhm
#endif
