#pragma once

// Mutants: deliberate bugs, compiled into one extra build (preset `mutants`) and chosen
// by name at run time, that prove the tests can fail. In every other build
// BELAY_MUTANT(x) is the constant false and leaves no trace.
//
//   if (!BELAY_MUTANT("skip-batch-flush")) BELAY_OK(fs.SyncData(pack));
//
// tests/mutants/list.txt names for each mutant the test that must fail with it;
// tools/mutants runs them.

namespace belay {

#if defined(BELAY_MUTANTS)
// True when the environment variable BELAY_MUTANT holds `name`.
bool MutantChosen(const char* name);
#define BELAY_MUTANT(name) (::belay::MutantChosen(name))
#else
#define BELAY_MUTANT(name) (false)
#endif

}  // namespace belay
