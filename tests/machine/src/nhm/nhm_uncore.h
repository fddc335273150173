// The uncore performance monitoring unit of one package, as far as Linux's
// driver programs it: eight counters, a clock, no interrupts.

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
  uint64_t since[N_COUNTERS];        // what its event's total was when the counter was at `counter`

  bool     on(unsigned n) const;
  uint64_t total(unsigned n) const;
  void     settle();
};

// The uncore's clock; the glue says what time it is.
uint64_t uncore_clock();

} // namespace nhm
#endif
