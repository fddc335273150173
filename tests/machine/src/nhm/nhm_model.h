// What tells the processors of the family apart, as far as the machine shows it.

#ifndef NHM_MODEL_H
#define NHM_MODEL_H

#include <cstdint>

namespace nhm {

// Which models a row of nhm_events.inc is for.
enum ModelSet : uint8_t {
  OF_NEHALEM = 1, OF_WESTMERE = 2, OF_WESTMERE_DP = 4, OF_WESTMERE_EX = 8,
  OF_ANY_WESTMERE = OF_WESTMERE | OF_WESTMERE_DP | OF_WESTMERE_EX,
  OF_ALL = OF_NEHALEM | OF_ANY_WESTMERE
};

struct Model {
  const char *name;
  uint32_t signature;
  ModelSet set;
  uint32_t missing_events;      // CPUID.0AH EBX
  uint32_t local_dram, remote_dram, remote_clean;   // OFFCORE_RSP bits
  bool     remote_hitm;         // data source 0x9 and response bit 11 exist
  const char *brand;
};

// The one that NHM_MODEL names, a Nehalem-EP if there is none of that name.
const Model &model();

} // namespace nhm
#endif
