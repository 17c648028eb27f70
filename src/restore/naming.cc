#include "base/escape.h"
#include "restore/naming_internal.h"

namespace belay {

std::string Quoted(const std::string& text) {
  return "'" + EscapeForDisplay(text) + "'";
}

std::string LabelOf(const Checkpoint& checkpoint) {
  if (checkpoint.name) return *checkpoint.name;
  return checkpoint.description;
}

std::string Naming(const Operation& operation) {
  std::string text = "the " + std::string(OperationName(operation.kind));
  if (operation.label.empty()) return text;
  text += operation.kind == OperationKind::kRollback
              ? " to " + Quoted(operation.label)
              : " of the rollback to " + Quoted(operation.label);
  return text;
}

}  // namespace belay
