#include "train/metrics.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "gtest/gtest.h"
#include "tests/train/temporary_folder.h"
#include "train/checkpoint.h"
#include "train/gradient.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(MetricsLine, IsOneStrictJsonObjectThatReadsBackExactly) {
  const double third = 1.0 / 3;
  const std::string line =
      MetricsLine(12, {{"epoch", 3}, {"loss", third}, {"learning_rate", 1e-5}, {"tokens_per_second", 1e300}});
  EXPECT_EQ(line.back(), '\n');
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const nlohmann::json json = nlohmann::json::parse(line);
  EXPECT_EQ(json["step"], 12);
  EXPECT_EQ(json["loss"].get<double>(), third);
  EXPECT_EQ(json["learning_rate"].get<double>(), 1e-5);
  EXPECT_EQ(json["tokens_per_second"].get<double>(), 1e300);
  EXPECT_EQ(line.substr(0, 20), "{\"step\":12,\"epoch\":3");
}

TEST(MetricsLine, NonFiniteNumbersStayStrictJson) {
  const nlohmann::json json =
      nlohmann::json::parse(MetricsLine(1, {{"loss", std::nan("")}, {"grad_norm", kInfinity}, {"eval_loss", -kInfinity}}));
  EXPECT_EQ(json["loss"], "NaN");
  EXPECT_EQ(json["grad_norm"], "Infinity");
  EXPECT_EQ(json["eval_loss"], "-Infinity");
}

// B109: powers of e, not of 2; the mean over tokens first, then exp; what overflows stays valid JSON.
TEST(MetricsLine, PerplexityIsTheExponentialOfTheMeanOverTokens) {
  const auto perplexity = [](double mean) { return LossSum{.loss = 20 * mean, .targets = 20}.perplexity(); };
  EXPECT_NEAR(perplexity(2.5), 12.18249, 5e-6);
  EXPECT_NEAR(perplexity(100), 2.688e43, 5e39);
  EXPECT_EQ(perplexity(800), kInfinity);
  LossSum total{.loss = 1.0 * 10, .targets = 10};
  total.Add({.loss = 3.0 * 10, .targets = 10});
  EXPECT_NEAR(total.perplexity(), std::exp(2.0), 1e-12);

  const nlohmann::json json =
      nlohmann::json::parse(MetricsLine(7, {{"eval_loss", 800}, {"eval_perplexity", perplexity(800)}, {"loss", 2.5}}));
  EXPECT_EQ(json["eval_perplexity"], "Infinity");
  EXPECT_EQ(json["loss"], 2.5);
}

TEST(MetricsWriter, EachLineIsInTheFileAtOnce) {
  const TemporaryFolder folder;
  absl::StatusOr<MetricsWriter> writer = MetricsWriter::Create(folder.Path("m"));
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->Write(1, {{"loss", 2.5}}).ok());
  EXPECT_EQ(BytesOf(folder.Path("m")), "{\"step\":1,\"loss\":2.5}\n");
  ASSERT_TRUE(writer->Write(2, {{"loss", 2}}).ok());
  EXPECT_EQ(BytesOf(folder.Path("m")), "{\"step\":1,\"loss\":2.5}\n{\"step\":2,\"loss\":2}\n");
}

TEST(MetricsWriter, ResumeDropsLaterAndTornLines) {
  const TemporaryFolder folder;
  PutBytes(folder.Path("m"), "{\"step\":9,\"loss\":1}\n{\"step\":10,\"loss\":2}\n{\"step\":11,\"loss\":3}\n{\"step\":1");
  absl::StatusOr<MetricsWriter> writer = MetricsWriter::Resume(folder.Path("m"), 10);
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->Write(11, {{"loss", 4}}).ok());
  EXPECT_EQ(BytesOf(folder.Path("m")), "{\"step\":9,\"loss\":1}\n{\"step\":10,\"loss\":2}\n{\"step\":11,\"loss\":4}\n");
  EXPECT_EQ(NamesIn(folder.path()), std::vector<std::string>{"m"});
}

TEST(MetricsWriter, ResumeWithoutAFileStartsOne) {
  const TemporaryFolder folder;
  ASSERT_TRUE(MetricsWriter::Resume(folder.Path("m"), 10).ok());
  EXPECT_EQ(BytesOf(folder.Path("m")), "");
}

TEST(MetricsWriter, ErrorsNameThePath) {
  const TemporaryFolder folder;
  const absl::Status status = MetricsWriter::Create(folder.Path("none/m")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(std::string(status.message()).find("none/m"), std::string::npos) << status;
}

// Best 1.0 at step 10; then a resume, and 1.2, NaN, 1.0 and 0.9, all of it also with the signs turned round.
TEST(BestMetric, B058_TheBestAndThePatienceSurviveAResume) {
  for (double sign : {1.0, -1.0}) {
    const bool higher = sign < 0;
    const TemporaryFolder folder;
    CheckpointMeta meta;
    EXPECT_FALSE(meta.best.Observe(5, std::nan(""), higher));  // NaN is never best, not even first
    EXPECT_EQ(meta.best.step, -1);
    EXPECT_TRUE(meta.best.Observe(10, sign * 1.0, higher));
    EXPECT_EQ(meta.best.since_improved, 0);
    EXPECT_FALSE(meta.best.Observe(15, sign * 1.1, higher));
    ASSERT_TRUE(SaveCheckpoint(folder.Path("c"), meta, {}).ok());

    const absl::StatusOr<Checkpoint> checkpoint = Checkpoint::Open(folder.Path("c"));
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    BestMetric resumed = checkpoint->meta().best;
    EXPECT_EQ(resumed, (BestMetric{10, sign * 1.0, 1}));
    EXPECT_FALSE(resumed.Observe(20, sign * 1.2, higher));
    EXPECT_FALSE(resumed.Observe(30, std::nan(""), higher));
    EXPECT_FALSE(resumed.Observe(40, sign * 1.0, higher));  // a tie keeps the old one
    EXPECT_EQ(resumed, (BestMetric{10, sign * 1.0, 4}));    // the patience went on counting
    EXPECT_TRUE(resumed.Observe(50, sign * 0.9, higher));
    EXPECT_EQ(resumed, (BestMetric{50, sign * 0.9, 0}));
  }
}

TEST(BestMetric, AnInfiniteFirstValueCanBeImproved) {
  BestMetric best;
  EXPECT_TRUE(best.Observe(1, kInfinity, false));
  EXPECT_FALSE(best.Observe(2, kInfinity, false));
  EXPECT_TRUE(best.Observe(3, 8.0, false));
}

}  // namespace
}  // namespace weft
