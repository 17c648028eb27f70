#pragma once

// The names of what lies in the store's directory itself (docs/format.md).

#include "base/path.h"

namespace belay {

inline const Name& ManifestName() {
  static const Name name = Name::Literal("manifest");
  return name;
}
inline const Name& TailName() {
  static const Name name = Name::Literal("tail");
  return name;
}
inline const Name& ReplacedName() {
  static const Name name = Name::Literal("replaced");
  return name;
}
inline const Name& PacksName() {
  static const Name name = Name::Literal("packs");
  return name;
}

}  // namespace belay
