// The uncore performance monitoring unit of one package, limited to what Linux's
// driver programs: eight counters, a clock, no interrupts.

#ifndef NHM_UNCORE_H
#define NHM_UNCORE_H

#include "nhm_mem.h"

namespace nhm {

class Uncore {
public:
  explicit Uncore(unsigned package);
  int rdmsr(uint32_t index, uint64_t *value);   // 0 not ours, 1 done, -1 #GP
  int wrmsr(uint32_t index, uint64_t value);
  bool counting() const { return enabled; }

private:
  enum { N_GENERAL = 8, FIXED = 8, N_COUNTERS = 9 };
  enum : uint64_t { COUNTER_MASK = (1ull << 48) - 1 };

  unsigned package;
  bool     enabled;
  uint64_t global_ctrl, fixed_ctrl, evtsel[N_GENERAL], counter[N_COUNTERS];
  uint64_t since[N_COUNTERS];        // the total of the counter's event when it was at `counter`

  bool     on(unsigned n) const;
  uint64_t total(unsigned n) const;
  void     settle();
};

// The uncore's clock; nhm_glue.cc implements it.
uint64_t uncore_clock();

} // namespace nhm
#endif
