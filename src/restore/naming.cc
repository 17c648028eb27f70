#include "base/escape.h"
#include "restore/naming_internal.h"

namespace belay {

std::string Quoted(const std::string& text) { return "'" + EscapeText(text) + "'"; }

std::string LabelOf(const Checkpoint& checkpoint) {
  if (checkpoint.name) return *checkpoint.name;
  return checkpoint.description;
}

namespace {

std::string NameOf(const Operation& operation, const std::string& quoted) {
  std::string text(OperationName(operation.kind));
  if (operation.chat && operation.chat->alone) {
    const std::string what = (operation.chat->summary ? "summary" : "rewind") +
                             (" of session " + operation.chat->session.substr(0, 8));
    return operation.kind == OperationKind::kRollback ? what : text + " of the " + what;
  }
  if (operation.label.empty()) return text;
  text += operation.kind == OperationKind::kRollback ? " to " : " of the rollback to ";
  return text + quoted;
}

}  // namespace

std::string Naming(const Operation& operation) {
  return "the " + NameOf(operation, Quoted(operation.label));
}

std::string InADescription(const Operation& operation) {
  return NameOf(operation, "'" + operation.label + "'");
}

}  // namespace belay
