// The code that runs for every instruction. Most instructions cause no event but their own
// retirement: these "quiet" ones are only counted here, and are reported to the PMU by the
// thousand. Where it may, not even this is done for each of them: Bochs counts its instructions anyway,
// and a glance at the start of a trace suffices. An instruction is then looked at if it may be no quiet
// one by what it is (its flags), or has turned out to be none.

#ifndef NHM_RETIRE_H
#define NHM_RETIRE_H

#include <cstdint>

// What has to be observed on a processor (bits of its nhm_hooks). An instruction's flags are those of them
// for which it is looked at by itself: NHM_HOOK_STEP and NHM_HOOK_NOW are in the flags of each.
enum {
  NHM_HOOK_STEP      = 1,   // follow every instruction
  NHM_HOOK_MEM       = 2,   // a count of some processor depends on the caches: keep them up to date; flag: fetches a line
  NHM_HOOK_BRANCH    = 4,   // branches are counted or recorded, or cost cycles that are counted
  NHM_HOOK_OPERATION = 8,   // floating point, vector, multiply or divide operations are counted
  NHM_HOOK_DIVISION  = 16,  // the cycles of divisions are counted
  NHM_HOOK_TRACE     = 32,  // count quiet instructions by the trace: look where one begins
  NHM_HOOK_NOW       = 64,  // and look where this instruction ends
  NHM_HOOK_WHOLE     = 128  // and at what has a LOCK or a repeat prefix, from its start to its end
};

namespace nhm {

enum { LINE = 64 };        // bytes that are fetched at a time
enum { TRACE = 32 };       // instructions at most that Bochs executes in one go: BX_MAX_TRACE_LENGTH
enum { MANY = 16 };        // iterations of a string instruction for which it is worth doing them at once

struct Retirement {        // of a logical processor
  bool     executing;      // an instruction has begun, which counts when it retires
  bool     repeated;       // it is a string instruction that has done some of its iterations
  bool     locked;         // it has a LOCK prefix
  bool     timed;          // time follows the modelled cycles
  bool     eventful;       // events were noted for it, or for one before it that did not retire
  uint8_t  cpl;            // at its start
  uint64_t rip;
  uint64_t line;           // of the last fetch: its physical address / LINE
  uint32_t room;           // so many quiet instructions fit before a counter can overflow
  uint32_t quiet[2];       // in the kernel, in user mode: retired and not counted yet

  // While instructions are counted by the trace. The counts are Bochs's, which also count what does not retire.
  bool     by_trace;       // it may be so: no counter has to see each instruction, and there is room
  uint64_t since;          // up to this count all are in quiet[]
  uint64_t unretired;      // so many beyond it did not retire
  uint64_t limit;          // from here on there may be too little room for a trace

  // Of Bochs's processor: its nhm_hooks, its count, and the address of the instruction that it executes.
  uint8_t *hooks;
  const uint64_t *count, *at;

  void begin(unsigned level, uint64_t address, bool lock) {
    executing = true;
    repeated = false;
    locked = lock;
    cpl = level;
    rip = address;
  }

  // Counting by the trace begins at this count.
  void begin_traces(uint64_t count) {
    since = count;
    unretired = 0;
    limit = count + room - TRACE;
  }

  // Notes the instructions that have retired at this level up to a count.
  void collect(uint64_t count) {
    const uint32_t n = count - since - unretired;
    quiet[cpl != 0] += n;
    room -= n;
    since = count;
    unretired = 0;
  }

  // The quiet instructions that the counters do not have yet.
  uint32_t uncounted() const {
    return quiet[0] + quiet[1] + (*hooks & NHM_HOOK_TRACE ? *count - since - unretired : 0);
  }

  // The instruction at hand, which was not looked at where it began, is looked at where it ends.
  void begin_late() {
    executing = true;
    repeated = locked = false;
    rip = *at;
    *hooks |= NHM_HOOK_NOW;
  }

  // The same where it ends. Returns whether the PMU has to look at it.
  bool ends_late(uint64_t next) {
    const bool retires = executing && !(repeated && next == rip);
    executing = repeated = locked = false;
    if (!eventful) *hooks &= ~NHM_HOOK_NOW;
    return retires && eventful;
  }

  // Notes an iteration of a string instruction. Returns whether time has to be taken back for it: the
  // model's cycles are the instruction's, however often it repeats.
  bool iterates() {
    const bool again = repeated && timed;
    repeated = true;
    return again;
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
