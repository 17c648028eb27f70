#include "core/selection.h"

#include <algorithm>

#include "ignore/wildmatch.h"

namespace belay {

namespace {

bool IsBelow(std::string_view path, std::string_view dir) {
  return path.size() > dir.size() + 1 && path.starts_with(dir) &&
         path[dir.size()] == '/';
}

// As git's pathspecs: `*` spans directories.
bool MatchesGlob(const std::string& pattern, std::string_view path) {
  return Wildmatch(pattern, path, {.path = false, .fold_case = false}) ||
         Wildmatch(pattern, path, {.path = true, .fold_case = false});  // a/**/b
}

}  // namespace

Selection::Selection(std::vector<std::string> given) : given_(std::move(given)) {
  used_.resize(given_.size());
  literal_.resize(given_.size());
  for (size_t i = 0; i < given_.size(); ++i) literal_[i] = !IsGlob(given_[i]);
}

void Selection::Resolve(const std::function<bool(const RelPath&)>& exists) {
  for (size_t i = 0; i < given_.size(); ++i) {
    if (literal_[i]) continue;
    auto path = RelPath::Parse(given_[i]);
    if (path.ok() && exists(*path)) literal_[i] = true;
  }
}

bool Selection::Has(const std::string& path) {
  if (given_.empty()) return true;
  bool found = false;
  for (size_t i = 0; i < given_.size(); ++i) {
    if (!Matches(i, path)) continue;
    used_[i] = true;
    found = true;
  }
  return found;
}

bool Selection::HasRoot() const {
  return given_.empty() || std::ranges::find(given_, "") != given_.end();
}

bool Selection::MayHaveBelow(const std::string& path) const {
  if (given_.empty() || path.empty()) return true;
  for (size_t i = 0; i < given_.size(); ++i)
    if (!literal_[i] || Matches(i, path) || IsBelow(given_[i], path)) return true;
  return false;
}

std::vector<std::string> Selection::Unused() const {
  std::vector<std::string> out;
  for (size_t i = 0; i < given_.size(); ++i)
    if (!used_[i]) out.push_back(given_[i]);
  return out;
}

bool Selection::Matches(size_t index, const std::string& path) const {
  const std::string& pattern = given_[index];
  if (pattern.empty() || path == pattern || IsBelow(path, pattern)) return true;
  if (literal_[index]) return false;
  // A glob may match the path or a directory above it.
  for (size_t end = path.size();;) {
    if (MatchesGlob(pattern, std::string_view(path).substr(0, end))) return true;
    end = path.rfind('/', end - 1);
    if (end == std::string::npos || end == 0) return false;
  }
}

}  // namespace belay
