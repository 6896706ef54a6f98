#include "base/csv.h"

#include <gtest/gtest.h>
#include <zlib.h>
#include <zstd.h>

#include <cmath>
#include <fstream>
#include <locale>

#include "base/decimal.h"
#include "base/random.h"
#include "base/temp_dir.h"
#include "base/text.h"

namespace flyball {
namespace {

/// Gives at most a few bytes at a time, so that every border falls everywhere.
class DripSource final : public ByteSource {
 public:
  DripSource(std::string_view bytes, std::size_t most) : left_(bytes), most_(most) {}
  Result<std::size_t> read(char* to, std::size_t size) override {
    const std::size_t n = std::min({size, most_, left_.size()});
    left_.copy(to, n);
    left_.remove_prefix(n);
    return n;
  }

 private:
  std::string_view left_;
  std::size_t most_;
};

/// "cell|cell" per row; a defective row is "!line: defect"; a row that is not ended has "~" behind it.
std::vector<std::string> rows_of(ByteSource& source, CsvOptions options = {}) {
  CsvReader reader(source, options);
  std::vector<std::string> rows;
  CsvRow row;
  for (;;) {
    const auto more = reader.next(row);
    if (!more) return rows.push_back("error: " + more.error().message()), rows;
    if (!*more) return rows;
    std::string text;
    if (!row.defect.empty()) {
      text = "!" + std::to_string(row.line) + ": " + std::string(row.defect);
    } else {
      for (const auto cell : row.cells)
        text += (text.empty() && cell.data() == row.cells[0].data() ? "" : "|") + std::string(cell);
    }
    rows.push_back(text + (row.ended ? "" : "~"));
  }
}

std::vector<std::string> rows_of(std::string_view text, CsvOptions options = {}) {
  const auto source = bytes_in_memory(text);
  auto rows = rows_of(*source, options);
  for (const std::size_t most : {1, 2, 3, 7}) {
    DripSource drip(text, most);
    EXPECT_EQ(rows_of(drip, options), rows) << "in pieces of " << most;
  }
  return rows;
}

using Rows = std::vector<std::string>;

TEST(Csv, SplitsPlainRows) {
  EXPECT_EQ(rows_of("a,b,c\n1,,3\n"), (Rows{"a|b|c", "1||3"}));
  EXPECT_EQ(rows_of(",\n"), Rows{"|"});
  EXPECT_EQ(rows_of("12345678,12345678,1234567\n"), Rows{"12345678|12345678|1234567"});
  EXPECT_EQ(rows_of(""), Rows{});
}

TEST(Csv, KnowsCrLfBomAndBlankLines) {
  EXPECT_EQ(rows_of("\xef\xbb\xbf"
                    "a,b\r\n\r\n  \n1,2\r\n"),
            (Rows{"a|b", "1|2"}));
  EXPECT_EQ(rows_of("\xef\xbb\xbf"), Rows{});
}

TEST(Csv, SaysThatTheLastLineMayBeCut) { EXPECT_EQ(rows_of("a,b\n1,25"), (Rows{"a|b", "1|25~"})); }

TEST(Csv, RefusesUtf16WithTheRemedy) {
  const Rows rows =
      rows_of(std::string_view("\xff\xfe"
                               "a\0,\0",
                               6));
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_NE(rows[0].find("iconv"), std::string::npos);
}

TEST(Csv, UnquotesCells) {
  EXPECT_EQ(rows_of("1,\"a,b\",2\n"), Rows{"1|a,b|2"});
  EXPECT_EQ(rows_of("1, \"{\"\"k\"\": 2.5}\" ,2\n"), Rows{"1|{\"k\": 2.5}|2"});
  EXPECT_EQ(rows_of("\"\",\"\"\"\"\n"), Rows{"|\""});
  EXPECT_EQ(rows_of("5\" rack,x\n"), Rows{"5\" rack|x"});  // a quote inside a cell is a character
}

TEST(Csv, QuotedCellRunsOverLines) {
  EXPECT_EQ(rows_of("\"Temp\n[C]\",b\n1,2\n"), (Rows{"Temp\n[C]|b", "1|2"}));
  EXPECT_EQ(rows_of("\"a\n\nb\",c\nx\n"), (Rows{"a\n\nb|c", "x"}));
}

TEST(Csv, StrayQuoteSpoilsItsOwnLineOnly) {
  EXPECT_EQ(rows_of("1,\"2\n3,4\n5,6\n"), (Rows{"!1: a quote is not closed", "3|4", "5|6"}));
  EXPECT_EQ(rows_of("1,\"5,3\n13,\"6,4\n7,8\n").front(), "!1: a quote is not closed");
  EXPECT_EQ(rows_of("1,\"5,3\n13,\"6,4\n7,8\n").back(), "7|8");
  EXPECT_EQ(rows_of("\"a\"b,c\n1,2\n"), (Rows{"!1: text follows a closing quote", "1|2"}));
  std::string many = "1,\"2\n";
  for (int i = 0; i < 40; ++i) many += "3,4\n";
  EXPECT_EQ(rows_of(many).size(), 41U);
}

TEST(Csv, NulBytesSpoilTheirLine) {
  EXPECT_EQ(rows_of(std::string_view("a,b\n\0\0\0,1\n3,4\n", 14)),
            (Rows{"a|b", "!2: the line holds NUL bytes", "3|4"}));
}

TEST(Csv, LongLinesAreSkippedInBoundedMemory) {
  CsvOptions options;
  options.max_line_bytes = 1000;
  const std::string text = "a,b\n" + std::string(5'000'000, 'x') + "\n1,2\n" + std::string(1001, 'y');
  EXPECT_EQ(rows_of(text, options),
            (Rows{"a|b", "!2: the line is longer than the limit", "1|2", "!4: the line is longer than the limit~"}));
  EXPECT_EQ(rows_of(std::string(1000, 'z') + "\nq\n", options), (Rows{std::string(1000, 'z'), "q"}));
}

TEST(Csv, TooManyCellsAreADefect) {
  EXPECT_EQ(rows_of(std::string(CsvReader::kMaxCells, ',') + "\na,b\n"),
            (Rows{"!1: the row has too many cells", "a|b"}));
  EXPECT_EQ(rows_of("\"q\"" + std::string(CsvReader::kMaxCells, ',') + "\n"), Rows{"!1: the row has too many cells"});
}

TEST(Csv, OtherSeparators) {
  CsvOptions options;
  options.separator = ';';
  EXPECT_EQ(rows_of("a;b,c\n", options), Rows{"a|b,c"});
  EXPECT_EQ(guess_separator("a;b;c"), ';');
  EXPECT_EQ(guess_separator("a\tb"), '\t');
  EXPECT_EQ(guess_separator("a,\"x;y;z\",b"), ',');
}

TEST(Csv, RandomTablesComeBack) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::string text;
    Rows expected;
    for (std::uint64_t r = random.below(20); r > 0; --r) {
      const std::uint64_t columns = 1 + random.below(12);
      std::string row;
      for (std::uint64_t c = 0; c < columns; ++c) {
        std::string cell = "x";
        for (std::uint64_t n = random.below(20); n > 0; --n) cell += "ab1. ,;\"\n\r"[random.below(10)];
        cell += "x";
        text += (c > 0 ? "," : "") + csv_cell(cell);
        row += (c > 0 ? "|" : "") + cell;
      }
      text += random.chance(0.5) ? "\n" : "\r\n";
      expected.push_back(row);
    }
    DripSource drip(text, 1 + random.below(40));
    EXPECT_EQ(rows_of(drip, {',', 1 << 16, 1000}), expected) << "seed " << seed;
  }
}

std::string gzip(std::string_view text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(text.size() + 1000, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

std::string random_text(std::size_t size) {
  Random random(7);
  std::string text;
  while (text.size() < size) text += std::to_string(random.below(1'000'000)) + (random.chance(0.2) ? "\n" : ",");
  return text;
}

std::string all_of(ByteSource& source) {
  std::string all;
  char block[1000];
  for (;;) {
    const auto n = source.read(block, sizeof block);
    if (!n || *n == 0) return all;
    all.append(block, *n);
  }
}

TEST(ByteSource, DecompressesByContent) {
  const std::string text = random_text(400'000);
  for (const auto& packed : {text, gzip(text), zstd(text), gzip(text.substr(0, 1000)) + gzip(text.substr(1000)),
                             zstd(text.substr(0, 1000)) + zstd(text.substr(1000))}) {
    const auto source = bytes_in_memory(packed);
    EXPECT_EQ(all_of(*source), text);
    EXPECT_EQ(source->damage(), "");
  }
}

TEST(ByteSource, CutStreamsGiveWhatTheyHaveAndSaySo) {
  const std::string text = random_text(400'000);
  for (const auto& packed : {gzip(text), zstd(text)}) {
    for (const std::size_t keep : {packed.size() - 1, packed.size() / 2, std::size_t{5}}) {
      const std::string cut = packed.substr(0, keep);
      const auto source = bytes_in_memory(cut);
      const std::string got = all_of(*source);
      EXPECT_TRUE(text.starts_with(got));
      EXPECT_NE(source->damage().find("cut off"), std::string::npos) << keep;
    }
    std::string flipped = packed;
    flipped[packed.size() / 2] = static_cast<char>(flipped[packed.size() / 2] ^ 0x40);
    const auto source = bytes_in_memory(flipped);
    all_of(*source);
    EXPECT_NE(source->damage(), "");
  }
}

TEST(ByteSource, CutStreamsGiveTheSameHoweverTheyAreAskedFor) {
  const std::string text = random_text(3000);
  for (const auto& packed : {gzip(text), zstd(text)}) {
    for (std::size_t keep = 1; keep < packed.size(); keep += 7) {
      const std::string cut = packed.substr(0, keep);
      const auto whole = bytes_in_memory(cut);
      const std::string expected = all_of(*whole);
      const auto source = bytes_in_memory(cut);
      std::string got;
      for (char c = 0;;) {
        const auto n = source->read(&c, 1);
        if (!n || *n == 0) break;
        got += c;
      }
      ASSERT_EQ(got, expected) << keep;
      ASSERT_EQ(source->damage(), whole->damage()) << keep;
    }
  }
}

TEST(ByteSource, TrailingGarbageBehindGzipIsLeftOutAndNamed) {
  const std::string packed = gzip("a,b\n") + std::string(100, '\0');
  const auto source = bytes_in_memory(packed);
  EXPECT_EQ(all_of(*source), "a,b\n");
  EXPECT_NE(source->damage(), "");
}

TEST(ByteSource, NamesAFileThatIsNotThereAndAFolder) {
  const TempDir dir;
  EXPECT_EQ(open_bytes(dir.file("absent")).error().code, ErrorCode::input);
  EXPECT_NE(open_bytes(dir.path()).error().message().find("folder"), std::string::npos);
}

TEST(Decimal, AgreesWithTheSlowParser) {
  for (const char* text :
       {"0", "-0", "1", "250.12", "-17.5", "0.1", "123456789.123456789", "1715960308.411", "1e3", "1.5e-7",
        "9007199254740993", "99999999999999999999", "0.000000000000000000001", "1.", ".5", "1e308"}) {
    double value = 0;
    ASSERT_TRUE(parse_decimal(text, value)) << text;
    EXPECT_EQ(value, *parse_double(text)) << text;
  }
  for (const char* text :
       {"", "-", ".", "1,5", "nan", "inf", "-inf", "1e999", "0x10", "1 ", " 1", "1W", "--1", "+1", "1.2.3"}) {
    double value = 0;
    EXPECT_FALSE(parse_decimal(text, value)) << text;
  }
  Random random(3);
  for (int i = 0; i < 20'000; ++i) {
    const double number = (random.uniform() - 0.5) * std::pow(10.0, static_cast<double>(random.below(30)) - 10.0);
    double value = 0;
    ASSERT_TRUE(parse_decimal(format_exact(number), value));
    EXPECT_EQ(value, number);
  }
}

TEST(Decimal, PaddedFormAgreesWithTheOther) {
  Random random(4);
  for (int i = 0; i < 100'000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(14); n > 0; --n) text += "0123456789.-e W"[random.below(15)];
    const std::string padded = text + "12345678 12345678";  // digits behind the end must not be taken
    const char* a = text.data();
    const char* b = padded.data();
    double left = 0;
    double right = 0;
    const bool took = take_decimal(a, text.data() + text.size(), left);
    ASSERT_EQ(took, take_padded_decimal(b, padded.data() + text.size(), right)) << text;
    ASSERT_EQ(a - text.data(), b - padded.data()) << text;
    ASSERT_EQ(left, right) << text;
  }
}

TEST(Decimal, WholeNumbers) {
  std::int64_t value = 0;
  EXPECT_TRUE(parse_whole("-123456789012345678", value));
  EXPECT_EQ(value, -123456789012345678);
  for (const char* text : {"", "-", "1.0", "1234567890123456789", "1a", "+1"})
    EXPECT_FALSE(parse_whole(text, value)) << text;
}

}  // namespace
}  // namespace flyball
