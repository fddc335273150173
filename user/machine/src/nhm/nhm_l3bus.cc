// The counters of the third-level cache and the bus of one package of a Xeon 7100 or 7400.

#include "nhm_l3bus.h"
#include "nhm_mem.h"
#include "nhm_model.h"
#include <cstring>

namespace nhm {

enum : uint32_t { CTR_CTL0 = 0x107CC, GL_CTL = 0x107D8 };
enum : uint64_t { SATURATE = 1ull << 59, COUNT = 0xFFFFFFFF };

static const uint64_t fsb_bits = 0x0FFFFFFF00000000ull, control_bits = 0x00FF000000FF0007ull;

// How the series differ: the bits of the upper halves that may be set (the others are reserved),
// and the number of the first counter in RDPMC. The agents of a 7100 are its logical processors,
// at most four; the agents of a 7400 are its dual-core modules, at most three.
static const struct Series { uint64_t gbsq_bits, gsnpq_bits; uint32_t rdpmc0; }
  xeon_7100 = { 0x0FFFFFFF00000000ull, 0x0BFFFFFF00000000ull, 18 },
  xeon_7400 = { 0x0FFFFFF700000000ull, 0x0BFFFFE700000000ull, 2 };
static const Series &series() { return design().netburst ? xeon_7100 : xeon_7400; }

// The part of the package that Core_Module_Select distinguishes: a core of a 7100, or a module of a
// 7400, which is two cores with consecutive numbers.
static unsigned part(unsigned cpu) {
  const unsigned core = topology.core_of(cpu) - topology.package_of(cpu) * topology.cores;
  return design().netburst ? core : core / 2;
}

// The processor's bit in Agent_Select.
static unsigned agent(unsigned cpu) {
  return design().netburst ? part(cpu) * 2 + cpu % topology.threads : part(cpu);
}

L3Bus *l3bus(unsigned package) {
  static L3Bus *const both[2] = { design().l3_bus ? new L3Bus(0) : NULL, design().l3_bus ? new L3Bus(1) : NULL };
  return both[package];
}

L3Bus::L3Bus(unsigned package_) : package(package_), frozen(0), status(0), enabled(false) {
  memset(ctl, 0, sizeof ctl);
  memset(part_of, 0, sizeof part_of);
}

void L3Bus::add(unsigned n) {
  if ((ctl[n] & COUNT) == COUNT) {
    status |= 1u << n;
    if (!(ctl[n] & SATURATE)) ctl[n] &= ~COUNT;
  }
  else ctl[n]++;
}

// Types and coherency states are not distinguished: a counter that does not select all of them
// counts nothing.
bool L3Bus::takes_all(unsigned n) const { return field(n, 43, 38) == 0x3F && field(n, 53, 47) == 0x7F; }

bool L3Bus::takes_part(unsigned n, unsigned select, unsigned from) const {
  return select == 0 || (select == 1 && from == part_of[n]) || (select == 2 && from != part_of[n]);
}

void L3Bus::looked_up(const Lookup &l) {
  for (unsigned n = GBSQ; n < GSNPQ; n++) {
    const unsigned fill = field(n, 57, 56);
    if (selects(n) && field(n, 35, 32) >> agent(l.cpu) & 1 && field(n, 37, 36) >> l.prefetch & 1 &&
        takes_all(n) && takes_answer(n, l.answer) && takes_part(n, field(n, 55, 54), part(l.cpu)) &&
        (fill == 0 || (l.fills && (fill == 1 || l.evicts == (fill == 3)))) &&
        (!field(n, 58, 58) || l.answer != CLEAN))
      add(n);
  }
}

// All snoops come from the central agent, and none is blocked.
void L3Bus::snooped(Answer answer) {
  for (unsigned n = GSNPQ; n < FSB; n++)
    if (selects(n) && field(n, 37, 37) && takes_all(n) && takes_answer(n, answer) && !field(n, 56, 56) && !field(n, 57, 57))
      add(n);
}

// One of the selected conditions is enough. Who drives the bus, and its clock, are not modelled.
void L3Bus::moved(Answer answer) {
  for (unsigned n = FSB; n < N; n++)
    if (selects(n) && field(n, 58, 58) && (field(n, 37, 32) == 0x3F || field(n, 38 + answer, 38 + answer)))
      add(n);
}

int L3Bus::rdmsr(uint32_t index, uint64_t *value) {
  if (index >= CTR_CTL0 && index < CTR_CTL0 + N) *value = ctl[index - CTR_CTL0];
  else if (index == GL_CTL) *value = uint64_t(status) << 48;
  else return 0;
  return 1;
}

int L3Bus::wrmsr(unsigned cpu, uint32_t index, uint64_t value) {
  if (index >= CTR_CTL0 && index < CTR_CTL0 + N) {
    const unsigned n = index - CTR_CTL0;
    const uint64_t bits = n < GSNPQ ? series().gbsq_bits : n < FSB ? series().gsnpq_bits : fsb_bits;
    if (value & ~COUNT & ~bits) return -1;
    ctl[n] = value;
    part_of[n] = part(cpu);
  } else if (index == GL_CTL) {
    const uint8_t which = value >> 16;
    if (value & ~control_bits) return -1;
    if (value & 1) frozen |= which;
    if (value & 2) frozen &= ~which;
    if (value & 4) {
      status &= ~which;
      for (unsigned n = 0; n < N; n++)
        if (which >> n & 1) ctl[n] &= ~COUNT;
    }
  } else return 0;
  enabled = false;
  for (unsigned n = 0; n < N; n++) enabled |= selects(n);
  return 1;
}

bool L3Bus::rdpmc(uint32_t index, uint64_t *value) {
  const uint32_t first = series().rdpmc0;
  if (index < first || index >= first + N) return false;
  *value = ctl[index - first] & COUNT;
  return true;
}

} // namespace nhm
