// A settings file of any bytes: what is put in comes out to the same bytes, what is
// taken out takes nothing else along, and each result reads back.

#include <algorithm>

#include "agent/jsonc.h"

namespace {

using namespace belay;

// `part` is `whole` with some bytes left out.
bool IsPartOf(std::string_view part, std::string_view whole) {
  size_t at = 0;
  for (char c : whole)
    if (at < part.size() && part[at] == c) ++at;
  return at == part.size();
}

std::vector<std::string> Texts(const Jsonc& doc, Jsonc::Id container) {
  std::vector<std::string> out;
  for (Jsonc::Id id : doc.Children(container))
    out.push_back(doc.Key(id) + "=" + std::string(doc.Text(id)));
  return out;
}

void PutAndTake(const Jsonc& doc, Jsonc::Id container, size_t depth) {
  const bool object = doc.kind(container) == Jsonc::Kind::kObject;
  const JsonDraft value = JsonDraft::Object(
      {{"matcher", JsonDraft::String("*")},
       {"hooks", JsonDraft::Array({JsonDraft::Object({{"t", JsonDraft::Int(60)}})})}});
  auto put =
      object ? doc.Append(container, "Event", value) : doc.Append(container, value);
  if (!put.ok()) {
    BELAY_CHECK(depth + 3 > Jsonc::kMaxDepth || doc.text().size() > 1000);
    return;
  }
  BELAY_CHECK(IsPartOf(doc.text(), put->text()));
  const auto before = Texts(doc, container), after = Texts(*put, container);
  BELAY_CHECK(after.size() == before.size() + 1);
  BELAY_CHECK(std::equal(before.begin(), before.end(), after.begin()));
  auto taken = put->Remove(put->Children(container).back());
  BELAY_CHECK(taken.ok());
  const bool blanks = doc.IsBlank(container) && doc.Text(container).size() > 2;
  if (!blanks) BELAY_CHECK(taken->text() == doc.text());
  BELAY_CHECK(IsPartOf(taken->text(), doc.text()));
}

void TakeOut(const Jsonc& doc, Jsonc::Id container) {
  const auto children = doc.Children(container);
  const auto before = Texts(doc, container);
  for (size_t i = 0; i < children.size() && i < 4; ++i) {
    auto taken = doc.Remove(children[i]);
    BELAY_CHECK(taken.ok() && IsPartOf(taken->text(), doc.text()));
    auto rest = before;
    rest.erase(rest.begin() + static_cast<long>(i));
    BELAY_CHECK(Texts(*taken, container) == rest);
  }
}

void Visit(const Jsonc& doc, Jsonc::Id id, size_t depth, int& budget) {
  if (--budget < 0) return;
  (void)doc.StringOf(id);
  if (doc.kind(id) != Jsonc::Kind::kObject && doc.kind(id) != Jsonc::Kind::kArray)
    return;
  PutAndTake(doc, id, depth);
  TakeOut(doc, id);
  for (Jsonc::Id child : doc.Children(id)) Visit(doc, child, depth + 1, budget);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto doc =
      Jsonc::Parse(std::string(reinterpret_cast<const char*>(data), size), "f.json");
  if (!doc.ok()) {
    BELAY_CHECK(doc.error().code == Errc::kInvalid);
    BELAY_CHECK(doc.error().what.starts_with("f.json:"));
    return 0;
  }
  if (doc->root() == Jsonc::kNone) {
    auto made = doc->SetRoot(JsonDraft::Object({}));
    BELAY_CHECK(made.ok() && made->text().starts_with(doc->text()));
    return 0;
  }
  int budget = 40;
  Visit(*doc, doc->root(), 1, budget);
  return 0;
}
