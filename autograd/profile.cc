#include "autograd/profile.h"

#include <chrono>
#include <utility>

namespace weft {
namespace {

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

void ProfilePass::Add(const ProfilePass& other) {
  calls += other.calls;
  seconds += other.seconds;
  flops += other.flops;
  bytes += other.bytes;
  held += other.held;
}

const ProfileRow* Profile::Find(absl::string_view name) const {
  for (const ProfileRow& row : rows_) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

ProfileRow& Profile::Row(absl::string_view name) {
  for (ProfileRow& row : rows_) {  // a model has some twenty names
    if (row.name == name) return row;
  }
  rows_.emplace_back().name = std::string(name);
  return rows_.back();
}

void Profile::Add(const Profile& other) {
  for (const ProfileRow& from : other.rows_) {
    ProfileRow& row = Row(from.name);
    row.forward.Add(from.forward);
    row.backward.Add(from.backward);
  }
}

ProfileMark Profile::Begin(int64_t held) {
  return {Now(), held, std::exchange(inner_seconds_, 0), std::exchange(inner_held_, 0)};
}

void Profile::End(const ProfileMark& mark, int64_t held, ProfilePass* pass) {
  const double seconds = Now() - mark.start;
  const int64_t grown = held - mark.held;
  ++pass->calls;
  pass->seconds += seconds - inner_seconds_;
  pass->held += grown - inner_held_;
  inner_seconds_ = mark.outer_seconds + seconds;
  inner_held_ = mark.outer_held + grown;
}

}  // namespace weft
