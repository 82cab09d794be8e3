// runnel ckpt rename, merge.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "runnel/base/format.h"
#include "runnel/io/checkpoint_names.h"
#include "runnel/io/checkpoint_writer.h"
#include "runnel/ops/strings.h"
#include "runnel/track/object_graph_bytes.h"
#include "tools/ckpt.h"
#include "tools/ckpt_files.h"
#include "tools/ckpt_graph.h"
#include "tools/printing.h"

namespace runnel::tools {
namespace {

using io::CheckpointEntry;
using io::CheckpointReader;
using io::CheckpointWriter;

constexpr std::string_view kSlotMark = "/.OPTIMIZER_SLOT/";

struct KeyRule {
  std::string from, to;
};

std::vector<KeyRule> parse_rules(const CkptArguments& arguments) {
  std::vector<KeyRule> rules;
  for (const std::string& text : arguments.rules) {
    const size_t at = text.find('=');
    if (at == std::string::npos) {
      throw invalid_argument("[ckpt] '{}' is no rule: OLD=NEW, as in model/dense1=model/hidden", text);
    }
    rules.push_back({text.substr(0, at), text.substr(at + 1)});
    if (!arguments.regex) continue;
    try {
      strings::regex_replace(Tensor(""), Tensor(rules.back().from), Tensor(rules.back().to));
    } catch (const Error&) {  // it speaks of the op and its inputs
      throw invalid_argument("[ckpt] '{}' is no rule of --regex: '{}' is no regular expression of RE2", text,
                             rules.back().from);
    }
  }
  return rules;
}

// OLD alone, or OLD and what follows after a slash. An empty OLD stands before every path, an empty NEW for none.
std::string rename_path(const std::string& path, const KeyRule& rule) {
  if (rule.from.empty()) return rule.to + "/" + path;
  if (path == rule.from) return rule.to;
  if (!path.starts_with(rule.from + "/")) return path;
  const std::string rest = path.substr(rule.from.size());
  return rule.to.empty() ? rest.substr(1) : rule.to + rest;
}

std::string rename_path(const std::string& path, const std::vector<KeyRule>& rules) {
  for (const KeyRule& rule : rules) {
    if (std::string renamed = rename_path(path, rule); renamed != path) return renamed;
  }
  return path;
}

std::string rename_by_regex(const std::string& key, const std::vector<KeyRule>& rules) {
  for (const KeyRule& rule : rules) {
    const Tensor renamed = strings::regex_replace(Tensor(key), Tensor(rule.from), Tensor(rule.to));
    if (renamed.to_vector<std::string>().at(0) != key) return renamed.to_vector<std::string>().at(0);
  }
  return key;
}

// The first rule that changes a key counts. The key of a slot is made of two: of a variable, and of an optimizer.
std::string rename_key(const std::string& key, const std::vector<KeyRule>& rules, bool regex) {
  if (key == train::kObjectGraphKey) return key;
  if (regex) return rename_by_regex(key, rules);
  const size_t at = key.find(kSlotMark);
  if (at == std::string::npos) return rename_path(key, rules);
  return rename_path(key.substr(0, at), rules) + std::string(kSlotMark) +
         rename_path(key.substr(at + kSlotMark.size()), rules);
}

void write_graph(const ObjectGraph& graph, CheckpointWriter& writer) {
  const std::string bytes = train::object_graph_to_bytes(graph);
  writer.add_strings(train::kObjectGraphKey, {}, std::vector<std::string_view>{bytes});
}

// In the order in which they stand in their shards: that is fastest.
std::vector<const CheckpointEntry*> in_file_order(const CheckpointReader& reader) {
  std::vector<const CheckpointEntry*> entries;
  for (const CheckpointEntry& entry : reader.entries()) entries.push_back(&entry);
  std::stable_sort(entries.begin(), entries.end(), [](const CheckpointEntry* a, const CheckpointEntry* b) {
    return std::pair(a->shard, a->offset) < std::pair(b->shard, b->offset);
  });
  return entries;
}

bool same_value(const CheckpointReader& a, const CheckpointEntry& in_a, const CheckpointReader& b,
                const CheckpointEntry& in_b) {
  if (in_a.dtype != in_b.dtype || in_a.shape != in_b.shape) return false;
  const auto bytes = [](const CheckpointReader& reader, const CheckpointEntry& entry) {
    if (entry.slices.empty()) return reader.read_raw(entry);
    std::vector<std::byte> whole(byte_size(entry));
    reader.read(entry, whole);
    return whole;
  };
  return bytes(a, in_a) == bytes(b, in_b);
}

// The graph says how the keys of a value begin; the ends ("-keys", "-values" of tables) follow from its kind.
void require_ends_stay(const CheckpointReader& reader, const ObjectGraph& graph, const KeyChange& rename) {
  for (const ObjectGraph::Node& node : graph.nodes) {
    for (const ObjectGraph::Attribute& attribute : node.attributes) {
      const std::string& begin = attribute.checkpoint_key;
      for (const CheckpointEntry& entry : entries_from(reader, begin)) {
        if (!entry.key.starts_with(begin)) break;
        if (rename(entry.key) == rename(begin) + entry.key.substr(begin.size())) continue;
        throw invalid_argument(
            "[ckpt] the object graph could not name '{}' any more; rename only what comes before /.ATTRIBUTES/",
            rename(entry.key));
      }
    }
  }
}

}  // namespace

void ckpt_rename(const CkptArguments& arguments) {
  const CheckpointReader reader = open_checkpoint(arguments.path);
  const auto rename = [rules = parse_rules(arguments), &arguments](const std::string& key) {
    return rename_key(key, rules, arguments.regex);
  };
  require_free(arguments.to);
  std::map<std::string, std::string> old_of;  // by the new key
  Json renamed = Json::array();
  for (const CheckpointEntry& entry : reader.entries()) {
    const std::string key = rename(entry.key);
    const auto [other, fresh] = old_of.emplace(key, entry.key);
    if (!fresh) throw invalid_argument("[ckpt] '{}' and '{}' would both be '{}'", other->second, entry.key, key);
    if (key != entry.key) renamed.push_back({entry.key, key});
  }
  if (renamed.empty()) {
    throw invalid_argument("[ckpt] no key of {} {} {}; `runnel ckpt ls` lists them", reader.prefix(),
                           arguments.regex ? "is matched by" : "is or begins with", fmt::join(arguments.rules, " or "));
  }
  std::optional<ObjectGraph> graph = read_object_graph(reader);
  GraphRenames in_graph;
  if (graph) {
    require_ends_stay(reader, *graph, rename);
    in_graph = rename_in_graph(*graph, rename);
  }
  CheckpointWriter writer(arguments.to);
  BytesProgress progress(arguments.to, stored_bytes(reader));
  for (const CheckpointEntry* entry : in_file_order(reader)) {
    if (graph && entry->key == train::kObjectGraphKey) {
      write_graph(*graph, writer);
    } else {
      copy_value(reader, *entry, rename(entry->key), writer);
    }
    progress.add(entry->slices.empty() ? entry->size : byte_size(*entry));
  }
  writer.finish();
  if (arguments.json) {
    print_json({{"checkpoint", arguments.to},
                {"renamed", renamed},
                {"object_graph", graph.has_value()},
                {"renamed_edges", in_graph.edges},
                {"not_in_graph", in_graph.not_done}});
    return;
  }
  for (const Json& pair : renamed) fmt::print("{} -> {}\n", pair[0].get<std::string>(), pair[1].get<std::string>());
  for (const std::string& key : in_graph.not_done) {
    fmt::print("the object graph leads to it as before: {}\n", key);
  }
  fmt::print("{}: {} of {} keys renamed, {}\n", arguments.to, renamed.size(), reader.entries().size(),
             graph ? fmt::format("{} edges of the object graph", in_graph.edges) : "there is no object graph");
}

void ckpt_merge(const CkptArguments& arguments) {
  require_free(arguments.to);
  std::vector<CheckpointReader> readers;
  for (const std::string& path : arguments.paths) readers.push_back(open_checkpoint(path));
  if (arguments.keep == "last") std::reverse(readers.begin(), readers.end());
  std::map<std::string, size_t> owner;  // the first that has the key
  std::vector<ObjectGraph> graphs;
  uint64_t total = 0;
  for (size_t r = 0; r < readers.size(); ++r) {
    if (std::optional<ObjectGraph> graph = read_object_graph(readers[r])) graphs.push_back(*std::move(graph));
    total += stored_bytes(readers[r]);
    for (const CheckpointEntry& entry : readers[r].entries()) {
      const auto [first, fresh] = owner.emplace(entry.key, r);
      if (fresh || entry.key == train::kObjectGraphKey || !arguments.keep.empty()) continue;
      const CheckpointReader& other = readers[first->second];
      if (same_value(other, other.entry(entry.key), readers[r], entry)) continue;
      throw make_error(Code::already_exists, "[ckpt] {} and {} have different values of '{}'; --keep says which stays",
                       other.prefix(), readers[r].prefix(), entry.key);
    }
  }
  CheckpointWriter writer(arguments.to);
  BytesProgress progress(arguments.to, total);
  for (size_t r = 0; r < readers.size(); ++r) {
    for (const CheckpointEntry* entry : in_file_order(readers[r])) {
      progress.add(entry->slices.empty() ? entry->size : byte_size(*entry));
      if (owner.at(entry->key) != r) continue;
      if (entry->key == train::kObjectGraphKey && graphs.size() > 1) {
        write_graph(merge_graphs(graphs), writer);
      } else {
        copy_value(readers[r], *entry, entry->key, writer);
      }
    }
  }
  writer.finish();
  if (arguments.json) {
    print_json({{"checkpoint", arguments.to}, {"keys", owner.size()}, {"bytes", writer.bytes()}});
  } else {
    fmt::print("{}: {} keys, {} bytes of {} checkpoints\n", arguments.to, owner.size(), writer.bytes(), readers.size());
  }
}

}  // namespace runnel::tools
