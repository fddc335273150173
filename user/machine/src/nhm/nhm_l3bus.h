// The counters of the third-level cache and the bus of one package of a Xeon 7100 or 7400: eight
// registers, each with a selection in its upper half and a count in its lower half, and one
// register that controls all of them. SDM volume 3B, section "Performance Monitoring on L3 and
// Caching Bus Controller Sub-Systems".

#ifndef NHM_L3BUS_H
#define NHM_L3BUS_H

#include <cstdint>

namespace nhm {

class L3Bus {
public:
  explicit L3Bus(unsigned package);
  int  rdmsr(uint32_t index, uint64_t *value);   // 0 not ours, 1 done, -1 #GP
  int  wrmsr(unsigned cpu, uint32_t index, uint64_t value);
  bool rdpmc(uint32_t index, uint64_t *value);
  bool counting() const { return enabled; }

  // What the other cores, or the other package, answer to a request.
  enum Answer { CLEAN, HIT, HITM };

  // A core asks for a line that its own caches lack (GBSQ).
  struct Lookup { unsigned cpu; bool prefetch, fills, evicts; Answer answer; };
  void looked_up(const Lookup &l);
  // The other package asks this one for a line (GSNPQ).
  void snooped(Answer answer);
  // A line goes over this package's bus (FSB).
  void moved(Answer answer);

private:
  enum { N = 8, GBSQ = 0, GSNPQ = 2, FSB = 4 };
  unsigned package, part_of[N];      // the part that wrote the register
  uint64_t ctl[N];
  uint8_t  frozen, status;
  bool     enabled;

  bool selects(unsigned n) const { return ctl[n] >> 32 && !(frozen >> n & 1); }
  uint64_t field(unsigned n, unsigned high, unsigned low) const { return ctl[n] >> low & ((2ull << (high - low)) - 1); }
  bool takes_answer(unsigned n, Answer answer) const { return field(n, 46, 44) >> answer & 1; }
  bool takes_all(unsigned n) const;
  bool takes_part(unsigned n, unsigned select, unsigned part) const;
  void add(unsigned n);
};

// The counters of a package; NULL if the model has none.
L3Bus *l3bus(unsigned package);

} // namespace nhm
#endif
