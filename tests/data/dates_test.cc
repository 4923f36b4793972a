// Reads the sources of `dates` with a parser that shares nothing with the generator.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/tasks/task.h"
#include "gtest/gtest.h"

namespace weft {
namespace {

bool IsLeap(int year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int DaysIn(int month, int year) {
  if (month == 2) return IsLeap(year) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

// 0 = Sunday; Sakamoto's method.
int WeekdayOf(int year, int month, int day) {
  constexpr int kShift[] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
  if (month < 3) --year;
  return (year + year / 4 - year / 100 + year / 400 + kShift[month - 1] + day) % 7;
}

// Every date that `text` can mean, by trying all readings of its numbers; nullopt for words that are no part of a date.
std::optional<std::set<std::vector<int>>> Readings(const std::string& text) {
  std::vector<std::string> words;
  std::vector<std::string> numbers;
  for (size_t i = 0; i < text.size();) {
    const auto run = [&](auto is) {
      size_t end = i;
      while (end < text.size() && is(static_cast<unsigned char>(text[end]))) ++end;
      std::string out = text.substr(i, end - i);
      for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      i = end;
      return out;
    };
    if (std::isdigit(static_cast<unsigned char>(text[i]))) {
      numbers.push_back(run([](int c) { return std::isdigit(c); }));
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      words.push_back(run([](int c) { return std::isalpha(c); }));
    } else {
      ++i;
    }
  }
  const std::vector<std::string> months = {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
  const std::vector<std::string> days = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};
  int month = 0;
  int weekday = -1;
  for (std::string word : words) {
    if (word == "of" || word == "the" || word == "th" || word == "st" || word == "nd" || word == "rd") continue;
    // A glued ordinal such as "29thnovember" is one run of letters.
    if (word.size() > 4 &&
        (word.substr(0, 2) == "nd" || word.substr(0, 2) == "rd" || word.substr(0, 2) == "st" || word.substr(0, 2) == "th") &&
        word.substr(0, 3) != "thu") {
      word = word.substr(2);
    }
    const auto m = std::find(months.begin(), months.end(), word.substr(0, 3));
    const auto d = std::find(days.begin(), days.end(), word.substr(0, 3));
    if (m != months.end() && month == 0) {
      month = static_cast<int>(m - months.begin()) + 1;
    } else if (d != days.end() && weekday < 0) {
      weekday = static_cast<int>(d - days.begin());
    } else {
      return std::nullopt;
    }
  }
  if (numbers.size() == 1 && numbers[0].size() == 8) {
    numbers = {numbers[0].substr(0, 4), numbers[0].substr(4, 2), numbers[0].substr(6, 2)};
  }
  if (numbers.size() != (month > 0 ? 2u : 3u)) return std::nullopt;
  std::set<std::vector<int>> readings;
  std::vector<size_t> order(numbers.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  do {
    const std::string& year_text = numbers[order[0]];
    const std::string& day_text = numbers[order.back()];
    const std::string& month_text = month > 0 ? day_text : numbers[order[1]];
    // Without a month word only year, month, day in this order is a reading.
    if (month == 0 && !std::is_sorted(order.begin(), order.end())) continue;
    if (year_text.size() != 4 || day_text.size() > 2 || month_text.size() > 2) continue;
    const int year = std::stoi(year_text);
    const int day = std::stoi(day_text);
    const int read_month = month > 0 ? month : std::stoi(month_text);
    if (read_month < 1 || read_month > 12 || day < 1 || day > DaysIn(read_month, year)) continue;
    if (weekday >= 0 && WeekdayOf(year, read_month, day) != weekday) continue;
    readings.insert({year, read_month, day});
  } while (std::next_permutation(order.begin(), order.end()));
  return readings;
}

TEST(DatesTest, EverySourceDeterminesItsDate) {
  const auto data = MakeTask("dates", {.train_size = 20000});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_GE(data->valid.size(), 10000);
  for (const auto* split : {&data->train, &data->valid}) {
    for (const TaskExample& example : *split) {
      const auto readings = Readings(example.source);
      ASSERT_TRUE(readings.has_value()) << example.source;
      ASSERT_EQ(readings->size(), 1) << example.source;
      const std::vector<int>& date = *readings->begin();
      char iso[16];
      std::snprintf(iso, sizeof(iso), "%04d-%02d-%02d", date[0] % 10000, date[1] % 100, date[2] % 100);
      ASSERT_EQ(example.target, iso) << example.source;
    }
  }
}

TEST(DatesTest, HeldOutDatesAreNeverSeen) {
  const auto data = MakeTask("dates", {.train_size = 65000});
  ASSERT_TRUE(data.ok()) << data.status();
  std::set<std::string> train;
  std::set<std::string> valid;
  for (const TaskExample& example : data->train) train.insert(example.target);
  for (const TaskExample& example : data->valid) valid.insert(example.target);
  EXPECT_EQ(valid.size(), 10000);
  // 65,000 training examples go round all the others: 73,049 days in two centuries, 24 + 25 of the years being leap years.
  EXPECT_EQ(train.size(), 365 * 200 + 49 - 10000);
  for (const std::string& date : valid) ASSERT_FALSE(train.contains(date)) << date;
  EXPECT_FALSE(train.contains("1900-02-29") || valid.contains("1900-02-29"));
  EXPECT_TRUE(train.contains("2000-02-29") || valid.contains("2000-02-29"));
}

TEST(DatesTest, OrdinalsAreRight) {
  const auto data = MakeTask("dates", {.train_size = 20000});
  ASSERT_TRUE(data.ok()) << data.status();
  int ordinals = 0;
  for (const TaskExample& example : data->train) {
    std::string text = example.source;
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    const int day = std::stoi(example.target.substr(8));
    for (const char* suffix : {"st", "nd", "rd", "th"}) {
      const size_t place = text.find(std::to_string(day) + suffix);
      if (place == std::string::npos) continue;
      ++ordinals;
      const std::string right = day == 1 || day == 21 || day == 31 ? "st"
                                : day == 2 || day == 22            ? "nd"
                                : day == 3 || day == 23            ? "rd"
                                                                   : "th";
      ASSERT_EQ(suffix, right) << example.source;
    }
  }
  EXPECT_GT(ordinals, 2000);
}

TEST(DatesTest, FormsVary) {
  const auto data = MakeTask("dates", {.train_size = 5000});
  ASSERT_TRUE(data.ok()) << data.status();
  // Letters as "a", capitals as "A", digits as "0", runs of them as one: the shape of a form.
  std::map<std::string, int> shapes;
  for (const TaskExample& example : data->train) {
    std::string shape;
    for (unsigned char c : example.source) {
      const char kind = std::isdigit(c) ? '0' : std::isupper(c) ? 'A' : std::islower(c) ? 'a' : static_cast<char>(c);
      if (shape.empty() || shape.back() != kind) shape.push_back(kind);
    }
    ++shapes[shape];
  }
  EXPECT_GT(shapes.size(), 100);
}

}  // namespace
}  // namespace weft
