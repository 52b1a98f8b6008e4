#include "base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <utility>

#include "absl/strings/str_format.h"

namespace regatta::base {
namespace {

// A comment put behind the text: yaml-cpp takes a quote that is never closed, and then finds this inside it. The
// control character cannot be in the text itself.
constexpr char kEndMark[] = "#\x01";

// Ends yaml-cpp's parse from inside a callback; caught in ParseYaml.
struct Refused {
  absl::Status status;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string name, int max_depth) : name_(std::move(name)), max_depth_(max_depth) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) Refuse(mark, "a second document ('---'); a configuration is one document");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    RefuseAnchor(mark, anchor);
    Add(NodeAt(mark, YamlNode::Kind::kNull));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    Refuse(mark, "an alias (*name); write the value out");
  }
  void OnAnchor(const YAML::Mark& mark, const std::string& anchor) override {
    Refuse(mark, absl::StrCat("an anchor (&", anchor, "); write the value out where it is needed"));
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    RefuseAnchor(mark, anchor);
    if (tag != "?" && tag != "!") RefuseTag(mark, tag);
    if (value.find(kEndMark) != std::string::npos) Refuse(mark, "a quote that is not closed");
    YamlNode node = NodeAt(mark, YamlNode::Kind::kScalar);
    node.quoting = tag == "!" ? YamlNode::Quoting::kQuoted : YamlNode::Quoting::kPlain;
    node.text = value;
    Add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    Open(mark, tag, anchor, style, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    Open(mark, tag, anchor, style, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { Close(); }

  YamlNode Take() { return std::move(root_); }

 private:
  struct Frame {
    YamlNode node;
    std::map<std::string, int, std::less<>> lines;  // of the keys seen
    bool wants_value = false;
  };

  [[noreturn]] void Refuse(const YAML::Mark& mark, std::string_view what) {
    throw Refused{
        absl::InvalidArgumentError(absl::StrCat(name_, ":", mark.line + 1, ":", mark.column + 1, ": ", View(what)))};
  }
  void RefuseAnchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) Refuse(mark, "an anchor (&name); write the value out where it is needed");
  }
  [[noreturn]] void RefuseTag(const YAML::Mark& mark, const std::string& tag) {
    Refuse(mark, absl::StrCat("a tag (", tag, "); write the plain value"));
  }
  static YamlNode NodeAt(const YAML::Mark& mark, YamlNode::Kind kind) {
    YamlNode node;
    node.kind = kind;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }
  void Open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YAML::EmitterStyle::value style,
            YamlNode::Kind kind) {
    RefuseAnchor(mark, anchor);
    if (!tag.empty() && tag != "?" && tag != "!") RefuseTag(mark, tag);
    if (static_cast<int>(stack_.size()) >= max_depth_)
      Refuse(mark, absl::StrCat("nested deeper than ", max_depth_, " levels"));
    if (!stack_.empty() && stack_.back().node.kind == YamlNode::Kind::kMap && !stack_.back().wants_value)
      Refuse(mark, "a list or map as a key, or a bracket that is not closed; keys are names");
    Frame frame;
    frame.node = NodeAt(mark, kind);
    frame.node.flow = style == YAML::EmitterStyle::Flow;
    stack_.push_back(std::move(frame));
  }
  void Close() {
    YamlNode node = std::move(stack_.back().node);
    stack_.pop_back();
    Add(std::move(node));
  }
  void Add(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Frame& frame = stack_.back();
    if (frame.node.kind == YamlNode::Kind::kMap && !frame.wants_value) {
      AddKey(frame, std::move(node));
      return;
    }
    frame.wants_value = false;
    frame.node.items.push_back(std::move(node));
  }
  void AddKey(Frame& frame, YamlNode key) {
    YAML::Mark mark;
    mark.line = key.line - 1;
    mark.column = key.column - 1;
    if (key.kind != YamlNode::Kind::kScalar || key.text.empty()) Refuse(mark, "an empty key; keys are names");
    const auto [it, fresh] = frame.lines.emplace(key.text, key.line);
    if (!fresh) {
      Refuse(mark, absl::StrCat("key '", key.text, "' is given twice, on lines ", it->second, " and ", key.line,
                                "; keep one of them"));
    }
    frame.node.keys.push_back(std::move(key.text));
    frame.node.key_lines.push_back(key.line);
    frame.wants_value = true;
  }

  const std::string name_;
  const int max_depth_;
  int documents_ = 0;
  YamlNode root_;
  std::vector<Frame> stack_;
};

// Length of the UTF-8 sequence that starts at text[i], 0 where it is not one.
size_t Utf8Length(std::string_view text, size_t i) {
  const auto byte = [&](size_t at) { return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u; };
  const unsigned c = byte(i);
  if (c < 0x80) return 1;
  const size_t length = c >= 0xC2 && c <= 0xDF ? 2 : (c & 0xF0) == 0xE0 ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
  for (size_t k = 1; k < length; ++k)
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  if (length == 3 && ((c == 0xE0 && byte(i + 1) < 0xA0) || (c == 0xED && byte(i + 1) > 0x9F))) return 0;
  if (length == 4 && ((c == 0xF0 && byte(i + 1) < 0x90) || (c == 0xF4 && byte(i + 1) > 0x8F))) return 0;
  return length;
}

absl::Status CheckText(std::string_view text, std::string_view name) {
  int line = 1, column = 1;
  for (size_t i = 0; i < text.size();) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const size_t length = Utf8Length(text, i);
    if (length == 0 || (c < 0x20 && c != '\n' && c != '\t' && c != '\r') || c == 0x7F) {
      return absl::InvalidArgumentError(absl::StrFormat("%s:%d:%d: byte 0x%02x is not UTF-8 text; is this a YAML file?",
                                                        View(name), line, column, c));
    }
    ++column;
    if (c == '\n') {
      ++line;
      column = 1;
    }
    i += length;
  }
  return absl::OkStatus();
}

// A plain scalar that JSON writes the same way: an integer or a decimal fraction without an exponent, true, false.
bool IsJsonWord(const YamlNode& node) {
  if (node.quoting == YamlNode::Quoting::kQuoted) return false;
  if (node.text == "true" || node.text == "false") return true;
  std::string_view digits = node.text;
  if (digits.starts_with('-')) digits.remove_prefix(1);
  const size_t dot = digits.find('.');
  const std::string_view whole = digits.substr(0, dot);
  const auto all_digits = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!all_digits(whole) || (whole.size() > 1 && whole[0] == '0')) return false;
  return dot == std::string_view::npos || all_digits(digits.substr(dot + 1));
}

void AppendJson(const YamlNode& node, std::string& out) {
  switch (node.kind) {
    case YamlNode::Kind::kNull:
      out += "null";
      return;
    case YamlNode::Kind::kScalar:
      out += IsJsonWord(node) ? node.text : QuoteJson(node.text);
      return;
    case YamlNode::Kind::kList:
    case YamlNode::Kind::kMap:
      break;
  }
  const bool map = node.kind == YamlNode::Kind::kMap;
  out += map ? '{' : '[';
  for (size_t i = 0; i < node.items.size(); ++i) {
    if (i > 0) out += ", ";
    if (map) absl::StrAppend(&out, QuoteJson(node.keys[i]), ": ");
    AppendJson(node.items[i], out);
  }
  out += map ? '}' : ']';
}

}  // namespace

absl::StatusOr<YamlNode> ParseYaml(std::string_view text, std::string_view name, const YamlLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(View(name), ": ", text.size(), " bytes; a configuration has at most ", limits.max_bytes));
  }
  RETURN_IF_ERROR(CheckText(text, name));
  TreeBuilder builder{std::string(name), limits.max_depth};
  try {
    std::istringstream stream{absl::StrCat(View(text), "\n", kEndMark, "\n")};
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& refused) {
    return refused.status;
  } catch (const YAML::Exception& error) {
    // yaml-cpp marks what is missing at the end of the text, which is behind the end mark.
    const int last = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
    return absl::InvalidArgumentError(absl::StrCat(View(name), ":", std::min(error.mark.line + 1, last), ":",
                                                   error.mark.column + 1, ": not YAML: ", error.msg));
  } catch (const std::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat(View(name), ": not YAML: ", error.what()));
  }
  return builder.Take();
}

std::string QuoteJson(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string ToJsonText(const YamlNode& node) {
  std::string out;
  AppendJson(node, out);
  return out;
}

}  // namespace regatta::base
