// runnel ckpt: what is in checkpoints.
#include "tools/ckpt.h"

#include <memory>

#include "tools/commands.h"

namespace runnel::tools {

void add_ckpt(CLI::App& app) {
  CLI::App* ckpt = app.add_subcommand("ckpt", "Look into checkpoints, check and compare them, change their keys");
  ckpt->require_subcommand(1);
  ckpt->footer(
      "PATH is the prefix of a checkpoint (save/model.ckpt-100), its .index file, or a folder: its latest checkpoint.\n"
      "Exit status: 0 done, 1 damaged, different or not readable, 2 the command line was wrong.\n"
      "Example: runnel ckpt ls save --json");
  auto arguments = std::make_shared<CkptArguments>();
  auto add = [&](const char* name, const char* what, void (*work)(const CkptArguments&)) {
    CLI::App* command = ckpt->add_subcommand(name, what);
    command->add_flag("--json", arguments->json, "Print JSON");
    command->callback([arguments, work] { work(*arguments); });
    return command;
  };
  auto add_path = [&](CLI::App* command, const char* name, std::string& path) {
    command->add_option(name, path, "A prefix, an .index file or a folder")->required()->type_name("PATH");
  };
  auto add_to = [&](CLI::App* command) {
    command->add_option("--to", arguments->to, "The new checkpoint's prefix")->required()->type_name("PREFIX");
  };
  add_path(add("ls", "List the keys: dtype, shape, shard, offset, bytes", ckpt_ls), "path", arguments->path);

  CLI::App* cat = add("cat", "Print a value", ckpt_cat);
  add_path(cat, "path", arguments->path);
  cat->add_option("key", arguments->key, "As ls prints it; /.ATTRIBUTES/VARIABLE_VALUE may be left out")
      ->required()
      ->type_name("KEY");
  cat->add_option("--npy", arguments->npy, "Write NumPy's file in place of printing; - is standard output")
      ->type_name("FILE|-");

  CLI::App* diff = add("diff", "Compare two checkpoints, key by key", ckpt_diff);
  add_path(diff, "first", arguments->path);
  add_path(diff, "second", arguments->other);

  add_path(add("verify", "Read everything and check every checksum", ckpt_verify), "path", arguments->path);
  add_path(add("tree", "Print the object graph", ckpt_tree), "path", arguments->path);

  CLI::App* rename = add("rename", "Write the checkpoint again with other keys", ckpt_rename);
  add_path(rename, "path", arguments->path);
  rename->add_option("rule", arguments->rules, "Keys that are OLD or begin with OLD/ get NEW there instead")
      ->required()
      ->type_name("OLD=NEW");
  rename->add_flag("--regex", arguments->regex, "OLD is an expression of RE2, found anywhere; NEW has \\1 for groups");
  add_to(rename);

  CLI::App* merge = add("merge", "Write one or more checkpoints into one with a single shard", ckpt_merge);
  merge->add_option("path", arguments->paths, "Prefixes, .index files or folders")->required()->type_name("PATH");
  merge->add_option("--keep", arguments->keep, "Which value stays where several have a key; otherwise an error")
      ->check(CLI::IsMember({"first", "last"}));
  add_to(merge);
}

}  // namespace runnel::tools
