#include "base/mutant.h"

#if defined(BELAY_MUTANTS)
#include <cstdlib>
#include <cstring>
#endif

namespace belay {

#if defined(BELAY_MUTANTS)
bool MutantChosen(const char* name) {
  static const char* const chosen = std::getenv("BELAY_MUTANT");
  return chosen != nullptr && std::strcmp(chosen, name) == 0;
}
#endif

}  // namespace belay
