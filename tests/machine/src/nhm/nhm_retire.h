// What every instruction passes on its way to retirement. Most do nothing that a counter
// asks for, but to be one: these are only counted here, and the PMU hears of them by the
// thousand. Every handler of Bochs contains these lines.

#ifndef NHM_RETIRE_H
#define NHM_RETIRE_H

#include <cstdint>

namespace nhm {

enum { LINE = 64 };        // bytes that are fetched at a time

struct Retirement {        // of a logical processor
  bool     executing;      // an instruction began that counts when it retires
  bool     repeated;       // it is a string instruction and has done some of its work
  bool     locked;         // it has a LOCK prefix
  bool     eventful;       // events were noted for it, or for one before it that did not retire
  uint8_t  cpl;            // when it began
  uint64_t rip;
  uint64_t line;           // of the last fetch: its physical address / LINE
  uint32_t room;           // so many quiet instructions fit before a counter can overflow
  uint32_t quiet[2];       // in the kernel, in user mode: retired and not counted yet

  void begin(unsigned level, uint64_t address, bool lock) {
    executing = true;
    repeated = false;
    locked = lock;
    cpl = level;
    rip = address;
  }

  // Whether the PMU has to look at the instruction that ends here.
  bool ends(uint64_t next) {
    if (!executing) return false;
    executing = false;
    // A repeated string instruction that was interrupted has not retired.
    if (repeated && next == rip) return false;
    if (eventful || !room) return true;
    room--;
    quiet[cpl != 0]++;
    return false;
  }
};

} // namespace nhm
#endif
