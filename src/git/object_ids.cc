#include "git/object_ids.h"

#include <algorithm>

namespace belay {

namespace {

template <class List>
typename List::value_type ValueOf(const List&, ByteSpan id) {
  typename List::value_type value;
  BELAY_CHECK(id.size() == value.size());
  std::ranges::copy(id, value.begin());
  return value;
}

}  // namespace

GitIds::GitIds(GitHash hash) {
  static_assert(GitHashSize(GitHash::kSha1) == 20 &&
                GitHashSize(GitHash::kSha256) == 32);
  if (hash != GitHash::kSha1) list_.emplace<1>();
}

void GitIds::Reserve(size_t count) {
  std::visit([&](auto& list) { list.reserve(count); }, list_);
}

void GitIds::Add(ByteSpan id) {
  std::visit([&](auto& list) { list.push_back(ValueOf(list, id)); }, list_);
}

void GitIds::Clear() {
  std::visit([](auto& list) { list.clear(); }, list_);
}

void GitIds::SortOnce() {
  std::visit(
      [](auto& list) {
        std::ranges::sort(list);
        list.erase(std::unique(list.begin(), list.end()), list.end());
      },
      list_);
}

void GitIds::Keep(const std::vector<bool>& which) {
  std::visit(
      [&](auto& list) {
        BELAY_CHECK(which.size() == list.size());
        size_t left = 0;
        for (size_t i = 0; i < list.size(); ++i)
          if (which[i]) list[left++] = list[i];
        list.resize(left);
      },
      list_);
}

size_t GitIds::size() const {
  return std::visit([](const auto& list) { return list.size(); }, list_);
}

ByteSpan GitIds::operator[](size_t at) const {
  return std::visit([&](const auto& list) { return ByteSpan(list[at]); }, list_);
}

std::optional<size_t> GitIds::Find(ByteSpan id) const {
  return std::visit(
      [&](const auto& list) -> std::optional<size_t> {
        if (id.size() !=
            std::tuple_size_v<typename std::decay_t<decltype(list)>::value_type>)
          return std::nullopt;
        const auto value = ValueOf(list, id);
        const auto found = std::ranges::lower_bound(list, value);
        if (found == list.end() || *found != value) return std::nullopt;
        return static_cast<size_t>(found - list.begin());
      },
      list_);
}

}  // namespace belay
