#include "autograd/base/parallel.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace weft {
namespace {

TEST(ParallelForTest, RunsEachTileOnce) {
  Workers workers(2);
  for (const int64_t n : {0, 1, 2, 3, 100, 1000}) {
    std::vector<std::atomic<int>> counts(n);
    workers.Run([&] { ParallelFor(n, [&](int64_t tile) { counts[tile].fetch_add(1); }); });
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(counts[i].load(), 1) << "tile " << i << " of " << n;
  }
}

TEST(ParallelForTest, NestedLoopsRunEachInnerTileOnce) {
  Workers workers(2);
  const int64_t outer = 20, inner = 30;
  std::vector<std::atomic<int>> counts(outer * inner);
  workers.Run([&] {
    ParallelFor(outer, [&](int64_t i) { ParallelFor(inner, [&](int64_t j) { counts[i * inner + j].fetch_add(1); }); });
  });
  for (const std::atomic<int>& count : counts) ASSERT_EQ(count.load(), 1);
}

// A thread that waits for its inner loop must not start another outer tile, which would find the first one's scratch in use.
TEST(ParallelForTest, WaitingThreadStartsNoOtherOuterTile) {
  Workers workers(2);
  std::mutex mutex;
  std::set<std::thread::id> inside;
  std::atomic<bool> reentered{false};
  workers.Run([&] {
    ParallelFor(40, [&](int64_t) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        if (!inside.insert(std::this_thread::get_id()).second) reentered = true;
      }
      std::atomic<int64_t> sum{0};
      ParallelFor(8, [&](int64_t tile) {
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        sum.fetch_add(tile);
      });
      EXPECT_EQ(sum.load(), 28);
      const std::lock_guard<std::mutex> lock(mutex);
      inside.erase(std::this_thread::get_id());
    });
  });
  EXPECT_FALSE(reentered);
}

TEST(EqualTilesTest, OneForEachThreadOutsideOfLoops) {
  for (const int threads : {1, 2, 3, 8}) {
    Workers(threads).Run([&] {
      EXPECT_EQ(EqualTiles(), threads);
      ParallelFor(5, [](int64_t) { EXPECT_GE(EqualTiles(), 1); });
      EXPECT_EQ(EqualTiles(), threads) << "after a loop";
    });
  }
}

// Two tiles that run at once share the threads; when one has ended, the other has them all.
TEST(EqualTilesTest, TilesOfALoopShareTheThreadsWhileTheyRun) {
  std::mutex mutex;
  std::condition_variable arrived;
  int count = 0;
  Workers(4).Run([&] {
    ParallelFor(2, [&](int64_t tile) {
      {
        std::unique_lock<std::mutex> lock(mutex);
        ++count;
        EXPECT_EQ(EqualTiles(), 2);
        arrived.notify_all();
        ASSERT_TRUE(arrived.wait_for(lock, std::chrono::seconds(10), [&] { return count == 2; }));
      }
      if (tile == 1) return;
      for (int i = 0; i < 10'000 && EqualTiles() != 4; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      EXPECT_EQ(EqualTiles(), 4);
    });
  });
}

TEST(EqualTilesTest, LoopsAroundCount) {
  Workers(12).Run([] {
    ParallelFor(2, [](int64_t) {
      const int64_t outside = EqualTiles();
      EXPECT_GE(outside, 6);
      ParallelFor(3, [&](int64_t) {
        EXPECT_GE(EqualTiles(), 2);
        EXPECT_LE(EqualTiles(), 12);
      });
      EXPECT_GE(EqualTiles(), outside);
    });
  });
}

TEST(WorkersTest, UseAtMostThatManyThreads) {
  for (const int threads : {1, 2, 4}) {
    Workers workers(threads);
    EXPECT_EQ(workers.threads(), threads);
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::atomic<int> running{0}, most{0};
    workers.Run([&] {
      ParallelFor(100, [&](int64_t) {
        const int now = running.fetch_add(1) + 1;
        for (int before = most.load(); before < now && !most.compare_exchange_weak(before, now);) {
        }
        {
          const std::lock_guard<std::mutex> lock(mutex);
          seen.insert(std::this_thread::get_id());
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        running.fetch_sub(1);
      });
    });
    EXPECT_LE(most.load(), threads);
    EXPECT_LE(static_cast<int>(seen.size()), threads);
    EXPECT_GE(seen.size(), 1u);
  }
}

// Two tiles that wait for each other finish only if two threads run them; the time-out turns a failure into an error, not a
// hang.
TEST(WorkersTest, TwoWorkersReallyRunTwoTilesAtOnce) {
  Workers workers(2);
  std::mutex mutex;
  std::condition_variable arrived;
  int count = 0;
  std::atomic<int> met{0};
  workers.Run([&] {
    ParallelFor(2, [&](int64_t) {
      std::unique_lock<std::mutex> lock(mutex);
      ++count;
      arrived.notify_all();
      if (arrived.wait_for(lock, std::chrono::seconds(10), [&] { return count == 2; })) met.fetch_add(1);
    });
  });
  EXPECT_EQ(met.load(), 2);
}

TEST(WorkersTest, OneWorkerRunsOnTheCallingThread) {
  Workers workers(1);
  std::set<std::thread::id> seen;  // no lock: one thread
  workers.Run([&] { ParallelFor(50, [&](int64_t) { seen.insert(std::this_thread::get_id()); }); });
  EXPECT_EQ(seen, std::set<std::thread::id>{std::this_thread::get_id()});
}

TEST(WorkersDeathTest, RefuseZeroThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Workers(0), "0 against 1");
}

TEST(AvailableThreadsTest, ObeysTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  EXPECT_GE(AvailableThreads(), 1);
  EXPECT_LE(AvailableThreads(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  // In a thread of its own: the mask of the others stays.
  int available = 0;
  std::thread([&] {
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    available = AvailableThreads();
  }).join();
  EXPECT_EQ(available, 1);
}

}  // namespace
}  // namespace weft
