// The uncore performance monitoring unit of one package. The memory model keeps
// running totals; a counter is the difference of two of them.

#include "nhm_uncore.h"
#include <cstring>

namespace nhm {

enum : uint32_t {
  GLOBAL_CTRL = 0x391, GLOBAL_STATUS = 0x392, GLOBAL_OVF_CTRL = 0x393,
  FIXED_CTR0 = 0x394, FIXED_CTR_CTRL = 0x395, PMC0 = 0x3B0, UNCORE_PERFEVTSEL0 = 0x3C0
};

// Codes and umasks of Intel's list of Nehalem uncore events. The counts of all
// rows whose umask bit is selected are added up.
static const struct { uint8_t event, umask; UncoreEv ev; } rows[] = {
  { 0x08, 0x01, UEV_LLC_HIT_READ },     // UNC_LLC_HITS.READ: data, code and RFO
  { 0x08, 0x02, UEV_LLC_HIT_WRITE },    // UNC_LLC_HITS.WRITE: write-backs
  { 0x08, 0x04, UEV_LLC_HIT_PROBE },    // UNC_LLC_HITS.PROBE: from the other package
  { 0x09, 0x01, UEV_LLC_MISS_READ },    // UNC_LLC_MISS.READ
  { 0x09, 0x04, UEV_LLC_MISS_PROBE },   // UNC_LLC_MISS.PROBE
  { 0x0A, 0x02, UEV_LINES_IN },         // UNC_LLC_LINES_IN.E_STATE
  { 0x0B, 0x02, UEV_LINES_OUT },        // UNC_LLC_LINES_OUT.E_STATE
  { 0x20, 0x04, UEV_REMOTE_READ },      // UNC_QHL_REQUESTS.REMOTE_READS
  { 0x20, 0x08, UEV_REMOTE_WRITE },     // UNC_QHL_REQUESTS.REMOTE_WRITES
  { 0x20, 0x10, UEV_LOCAL_READ },       // UNC_QHL_REQUESTS.LOCAL_READS
  { 0x20, 0x20, UEV_LOCAL_WRITE },      // UNC_QHL_REQUESTS.LOCAL_WRITES
  { 0x2C, 0x01, UEV_LOCAL_READ },       // UNC_QMC_NORMAL_READS.CH0: the only channel
  { 0x2C, 0x01, UEV_REMOTE_READ },
  { 0x2F, 0x01, UEV_LOCAL_WRITE },      // UNC_QMC_WRITES.FULL.CH0
  { 0x2F, 0x01, UEV_REMOTE_WRITE },
};

Uncore::Uncore(unsigned package_) : package(package_), enabled(false), global_ctrl(0), fixed_ctrl(0) {
  memset(evtsel, 0, sizeof evtsel);
  memset(counter, 0, sizeof counter);
  memset(since, 0, sizeof since);
}

bool Uncore::on(unsigned n) const {
  return n == FIXED ? (global_ctrl >> 32 & 1) && (fixed_ctrl & 1)
                    : (global_ctrl >> n & 1) && (evtsel[n] >> 22 & 1);
}

uint64_t Uncore::total(unsigned n) const {
  if (n == FIXED) return uncore_clock();
  uint64_t sum = 0;
  if (!(evtsel[n] & 0xFF840000))         // edge, INV and CMASK are not modelled: it counts 0
    for (const auto &r : rows)
      if (r.event == (evtsel[n] & 0xFF) && (evtsel[n] >> 8 & r.umask)) sum += uncore_total[package][r.ev];
  return sum;
}

// Brings all counters up to date.
void Uncore::settle() {
  for (unsigned n = 0; n < N_COUNTERS; n++) {
    const uint64_t t = total(n);
    if (on(n)) counter[n] = (counter[n] + t - since[n]) & COUNTER_MASK;
    since[n] = t;
  }
}

int Uncore::rdmsr(uint32_t index, uint64_t *value) {
  settle();
  if (index >= PMC0 && index < PMC0 + N_GENERAL) *value = counter[index - PMC0];
  else if (index >= UNCORE_PERFEVTSEL0 && index < UNCORE_PERFEVTSEL0 + N_GENERAL) *value = evtsel[index - UNCORE_PERFEVTSEL0];
  else switch (index) {
    case GLOBAL_CTRL:     *value = global_ctrl; break;
    case GLOBAL_STATUS:
    case GLOBAL_OVF_CTRL: *value = 0; break;
    case FIXED_CTR0:      *value = counter[FIXED]; break;
    case FIXED_CTR_CTRL:  *value = fixed_ctrl; break;
    default: return 0;
  }
  return 1;
}

int Uncore::wrmsr(uint32_t index, uint64_t value) {
  settle();
  if (index >= PMC0 && index < PMC0 + N_GENERAL) counter[index - PMC0] = value & COUNTER_MASK;
  else if (index >= UNCORE_PERFEVTSEL0 && index < UNCORE_PERFEVTSEL0 + N_GENERAL) {
    const unsigned n = index - UNCORE_PERFEVTSEL0;
    evtsel[n] = value;
    since[n] = total(n);
  }
  else switch (index) {
    case GLOBAL_CTRL:     global_ctrl = value; break;
    case GLOBAL_STATUS:   return -1;
    case GLOBAL_OVF_CTRL: break;
    case FIXED_CTR0:      counter[FIXED] = value & COUNTER_MASK; break;
    case FIXED_CTR_CTRL:  fixed_ctrl = value; break;
    default: return 0;
  }
  enabled = false;
  for (unsigned n = 0; n < N_GENERAL; n++) enabled |= on(n);
  return 1;
}

} // namespace nhm
