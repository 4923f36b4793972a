// dates: a date from 1900-01-01 to 2099-12-31 as people write it -> ISO 8601 (2026-11-29). Every form determines its date: the
// month is a word, or the order is year, month, day; the year has four digits. Noise: case, spaces, separators, leading zeros,
// ordinals, the right weekday. Held out: dates, none of which training sees in any form.
#include <chrono>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "data/tasks/makers.h"

namespace weft {
namespace {

constexpr absl::string_view kMonths[] = {"January", "February", "March",     "April",   "May",      "June",
                                         "July",    "August",   "September", "October", "November", "December"};
constexpr absl::string_view kWeekdays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
constexpr std::chrono::sys_days kFirst{std::chrono::year{1900} / 1 / 1};
constexpr int64_t kDates = (std::chrono::sys_days{std::chrono::year{2100} / 1 / 1} - kFirst).count();

struct Date {
  int year;
  int month;    // 1..12
  int day;      // 1..31
  int weekday;  // 0 = Sunday
};

Date DateAt(int64_t index) {
  const std::chrono::sys_days days = kFirst + std::chrono::days{index};
  const std::chrono::year_month_day date{days};
  return {static_cast<int>(date.year()), static_cast<int>(static_cast<unsigned>(date.month())),
          static_cast<int>(static_cast<unsigned>(date.day())), static_cast<int>(std::chrono::weekday{days}.c_encoding())};
}

std::string Ordinal(int day) {
  const bool teen = 11 <= day && day <= 13;
  const absl::string_view suffix = teen ? "th" : day % 10 == 1 ? "st" : day % 10 == 2 ? "nd" : day % 10 == 3 ? "rd" : "th";
  return absl::StrCat(day, suffix);
}

template <size_t n>
absl::string_view Pick(const absl::string_view (&choices)[n], Dice* dice) {
  return choices[dice->Below(n)];
}

std::string Number(int value, Dice* dice) { return dice->Chance(50) ? absl::StrFormat("%02d", value) : absl::StrCat(value); }

std::string MonthWord(int month, Dice* dice) {
  const absl::string_view name = kMonths[month - 1];
  if (dice->Chance(45) || name.size() == 3) return std::string(name);
  const int64_t letters = month == 9 && dice->Chance(30) ? 4 : 3;  // Sept
  return absl::StrCat(name.substr(0, letters), dice->Chance(25) ? "." : "");
}

// 2026-11-29, 2026/1/9, 2026 01 09, 20261129. Without separator always eight digits: 2026111 would be two dates.
std::string NumericForm(const Date& date, Dice* dice) {
  constexpr absl::string_view kSeparators[] = {"-", "-", "/", ".", " ", " - ", ""};
  const absl::string_view separator = Pick(kSeparators, dice);
  if (separator.empty()) return absl::StrFormat("%04d%02d%02d", date.year, date.month, date.day);
  const std::string month = Number(date.month, dice);
  const std::string day = Number(date.day, dice);
  return absl::StrCat(date.year, separator, month, separator, day);
}

// With the month as a word: 29 Nov 2026, the 29th of November, 2026, Nov. 29, 2026, 2026-Nov-29, 29nov2026.
std::string WordForm(const Date& date, Dice* dice) {
  const std::string month = MonthWord(date.month, dice);
  const bool ordinal = dice->Chance(35);
  const std::string day = ordinal ? Ordinal(date.day) : Number(date.day, dice);
  switch (dice->Below(4)) {
    case 0: {  // day, month, year
      if (ordinal && dice->Chance(60)) {
        return absl::StrCat(dice->Chance(30) ? "the " : "", day, " of ", month, dice->Chance(30) ? ", " : " ", date.year);
      }
      constexpr absl::string_view kSeparators[] = {" ", " ", " ", "-", "/", ".", ""};
      const absl::string_view separator = Pick(kSeparators, dice);
      return absl::StrCat(day, separator, month, separator, date.year);
    }
    case 1: {  // month, day, year: the numbers are neighbours and stay apart
      constexpr absl::string_view kBefore[] = {" ", " ", "-", "/", ""};
      constexpr absl::string_view kAfter[] = {", ", ", ", " ", "-", "/", ","};
      return absl::StrCat(month, ordinal && dice->Chance(20) ? " the " : Pick(kBefore, dice), day, Pick(kAfter, dice),
                          date.year);
    }
    case 2: {  // year, month, day
      constexpr absl::string_view kSeparators[] = {" ", " ", ", ", "-", "/", ".", ""};
      return absl::StrCat(date.year, Pick(kSeparators, dice), month, dice->Chance(80) ? " " : "-", day);
    }
    default:  // the plainest ones, more often
      if (dice->Chance(50)) return absl::StrCat(day, " ", month, " ", date.year);
      return absl::StrCat(month, " ", day, ", ", date.year);
  }
}

std::string Weekday(int weekday, Dice* dice) {
  const absl::string_view name = kWeekdays[weekday];
  const absl::string_view shown = dice->Chance(50) ? name : name.substr(0, 3);
  return absl::StrCat(shown, dice->Chance(60) ? ", " : " ");
}

void AddNoise(std::string* text, Dice* dice) {
  const int64_t change = dice->Below(100);
  if (change < 20) {
    absl::AsciiStrToLower(text);
  } else if (change < 35) {
    absl::AsciiStrToUpper(text);
  } else if (change < 45) {
    for (char& c : *text) c = dice->Chance(50) ? absl::ascii_tolower(c) : absl::ascii_toupper(c);
  }
  if (dice->Chance(10)) *text = absl::StrReplaceAll(*text, {{" ", "  "}});
  if (dice->Chance(5)) *text = absl::StrCat(" ", *text);
  if (dice->Chance(5)) text->push_back(' ');
}

TaskExample MakeExample(int64_t index, RandomKey key) {
  const Date date = DateAt(index);
  Dice dice(key);
  std::string text = dice.Chance(20) ? Weekday(date.weekday, &dice) : "";
  text += dice.Chance(25) ? NumericForm(date, &dice) : WordForm(date, &dice);
  AddNoise(&text, &dice);
  return {std::move(text), absl::StrFormat("%04d-%02d-%02d", date.year, date.month, date.day)};
}

}  // namespace

absl::StatusOr<TaskData> MakeDates(const TaskOptions& options) {
  const int64_t train = options.train_size > 0 ? options.train_size : 100000;
  const int64_t valid = options.valid_size > 0 ? options.valid_size : 10000;
  constexpr int64_t kMaxTrain = int64_t{1} << 26;
  if (valid >= kDates || train > kMaxTrain) {
    return absl::InvalidArgumentError(absl::StrCat("task dates: found train_size = ", train, " and valid_size = ", valid,
                                                   ", allowed to ", kMaxTrain, " and to ", kDates - 1, " (there are ", kDates,
                                                   " dates)"));
  }
  // Held out are the first dates of a permutation; training goes round the others, in another form each time.
  const RandomKey key = RandomKey{options.seed}.Fold("dates");
  const Permutation order(key.Fold("order"), kDates);
  TaskData data;
  for (int64_t i = 0; i < valid; ++i) data.valid.push_back(MakeExample(order[i], key.Fold("valid").Fold(i)));
  for (int64_t i = 0; i < train; ++i) {
    data.train.push_back(MakeExample(order[valid + i % (kDates - valid)], key.Fold("train").Fold(i)));
  }
  return data;
}

}  // namespace weft
