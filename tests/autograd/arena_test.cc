#include "autograd/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace weft {
namespace {

bool Aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % Arena::kAlignment == 0; }

TEST(Arena, HandsOutAlignedDisjointMemory) {
  Arena arena;
  std::vector<char*> blocks;
  for (int i = 0; i < 300; ++i) {
    char* block = static_cast<char*>(arena.Allocate(i * 7));
    EXPECT_TRUE(Aligned(block));
    std::memset(block, i & 127, i * 7);
    blocks.push_back(block);
  }
  for (int i = 0; i < 300; ++i) {
    for (int k = 0; k < i * 7; ++k) ASSERT_EQ(blocks[i][k], i & 127) << "allocation " << i;
  }
}

TEST(Arena, AnEmptyAllocationIsNotNull) {
  Arena arena;
  void* first = arena.Allocate(0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, arena.Allocate(0));
}

TEST(Arena, KeepsItsMemoryAndMergesBlocksAtReset) {
  Arena arena;
  const auto step = [&] {
    for (int i = 0; i < 100; ++i) arena.Allocate(5000);
  };
  step();
  arena.Reset();
  EXPECT_EQ(arena.used(), 0);
  const int64_t merged = arena.capacity();
  EXPECT_GE(merged, 100 * 5000);
  for (int i = 0; i < 3; ++i) {
    step();
    EXPECT_EQ(arena.capacity(), merged);
    arena.Reset();
  }
  EXPECT_EQ(arena.capacity(), merged);
}

TEST(ArenaDeathTest, RefusesANegativeSize) {
  Arena arena;
  EXPECT_DEATH(arena.Allocate(-1), "Arena::Allocate");
}

TEST(BufferPool, ReusesWhatCameBack) {
  BufferPool pool;
  void* a = pool.Take(1000);
  void* b = pool.Take(1000);
  EXPECT_NE(a, b);
  pool.Give(a);
  EXPECT_EQ(pool.Take(900), a);
  const int64_t held = pool.capacity();
  for (int i = 0; i < 1000; ++i) pool.Give(pool.Take(1000));
  EXPECT_EQ(pool.capacity(), held);
  EXPECT_TRUE(Aligned(b));
}

TEST(BufferPool, TakesTheTightestFit) {
  BufferPool pool;
  void* large = pool.Take(4096);
  void* small = pool.Take(2304);
  pool.Give(large);
  pool.Give(small);
  EXPECT_EQ(pool.Take(2240), small);
  EXPECT_EQ(pool.Take(2240), large);
  pool.Give(large);
  EXPECT_NE(pool.Take(64), large) << "a small request must not use up a large buffer";
}

TEST(BufferPool, CutsBuffersOutOfDonatedMemory) {
  BufferPool pool;
  Arena arena;
  char* memory = static_cast<char*>(arena.Allocate(4096));
  pool.Donate(memory, 4096);
  char *a = static_cast<char*>(pool.Take(1000)), *b = static_cast<char*>(pool.Take(2000));
  const auto inside = [&](const char* data, int64_t bytes) { return memory <= data && data + bytes <= memory + 4096; };
  EXPECT_TRUE(inside(a, 1000) && inside(b, 2000) && Aligned(a) && Aligned(b));
  EXPECT_TRUE(a + 1000 <= b || b + 2000 <= a);
  EXPECT_EQ(pool.used(), 0);
  EXPECT_FALSE(inside(static_cast<char*>(pool.Take(2000)), 1));  // no room is left for that
  pool.Give(b);
  EXPECT_EQ(pool.Take(1900), b);
  pool.Reset();
  EXPECT_FALSE(inside(static_cast<char*>(pool.Take(100)), 1));
}

TEST(BufferPool, ForgetsAtReset) {
  BufferPool pool;
  void* a = pool.Take(100);
  pool.Give(a);
  pool.Reset();
  void* b = pool.Take(100);
  void* c = pool.Take(100);
  EXPECT_NE(b, c);
}

}  // namespace
}  // namespace weft
