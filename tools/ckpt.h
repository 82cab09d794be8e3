#pragma once

// The commands of `runnel ckpt`; each does its work and throws a runnel::Error where it fails.
#include <string>
#include <vector>

namespace runnel::tools {

struct CkptArguments {
  std::string path, other;
  std::vector<std::string> paths;  // of merge
  std::string key;
  std::string npy;
  std::vector<std::string> rules;  // OLD=NEW
  bool regex = false;
  std::string to;
  std::string keep;  // of equal keys: "first" or "last"
  bool json = false;
};

void ckpt_ls(const CkptArguments& arguments);
void ckpt_cat(const CkptArguments& arguments);
void ckpt_verify(const CkptArguments& arguments);
void ckpt_diff(const CkptArguments& arguments);
void ckpt_rename(const CkptArguments& arguments);
void ckpt_merge(const CkptArguments& arguments);
void ckpt_tree(const CkptArguments& arguments);

}  // namespace runnel::tools
