#include "base/printable.h"

#include <gtest/gtest.h>

namespace regatta::base {
namespace {

TEST(Printable, OrdinaryTextStaysAsItIs) {
  for (const char* text : {"", "host:4711", "C:\\temp", "größe", "模型", "\U0001F6A3 regatta", "a b"})
    EXPECT_EQ(Printable(text), text);
}

TEST(Printable, ControlCharactersBecomeVisible) {
  EXPECT_EQ(Printable("a\nW1117 forged"), "a\\nW1117 forged");
  EXPECT_EQ(Printable("\r\t"), "\\r\\t");
  EXPECT_EQ(Printable("\x1b[2J\x07\x7f"), "\\x1b[2J\\x07\\x7f");
  EXPECT_EQ(Printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(Printable("\u0085\u009b31m"), "\\u0085\\u009b31m");
}

TEST(Printable, WhatTurnsTextAroundOrEndsLinesBecomesVisible) {
  EXPECT_EQ(Printable("a\u202egpj.exe"), "a\\u202egpj.exe");
  EXPECT_EQ(Printable("\u2066\u2069\u200f\u061c"), "\\u2066\\u2069\\u200f\\u061c");
  EXPECT_EQ(Printable("\u2028\u2029\ufeff"), "\\u2028\\u2029\\ufeff");
  EXPECT_EQ(Printable("\U000e0041"), "\\U000e0041");
}

TEST(Printable, BytesThatAreNoUtf8BecomeVisible) {
  EXPECT_EQ(Printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(Printable("\xc0\x8a"), "\\xc0\\x8a");                    // a newline in too many bytes
  EXPECT_EQ(Printable("\xe0\x80\x8a"), "\\xe0\\x80\\x8a");           // the same
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // a surrogate
  EXPECT_EQ(Printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // behind the last character
  EXPECT_EQ(Printable("\x9b"
                      "31m"),
            "\\x9b31m");  // C1 in one byte
}

TEST(Printable, TwiceIsAsOnce) {
  const std::string once = Printable("a\x1b\n\xff\u202e");
  EXPECT_EQ(Printable(once), once);
}

TEST(Printable, OfSeveralLinesTheEndsStay) { EXPECT_EQ(PrintableLines("a\nb\x1b\r\n"), "a\nb\\x1b\\r\n"); }

}  // namespace
}  // namespace regatta::base
