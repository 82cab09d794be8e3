#pragma once

// The arguments of an example: --name=value or --name value.
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

class Options {
 public:
  // `defaults`: every option there is, with its value when it is not given.
  Options(int argc, char** argv, std::map<std::string, std::string> defaults) : values_(std::move(defaults)) {
    for (int i = 1; i < argc; ++i) {
      std::string name = argv[i];
      if (name.rfind("--", 0) != 0) fail("unexpected argument '" + name + "'");
      name.erase(0, 2);
      std::string value;
      if (const size_t equals = name.find('='); equals != std::string::npos) {
        value = name.substr(equals + 1);
        name.erase(equals);
      } else if (i + 1 < argc) {
        value = argv[++i];
      }
      if (!values_.contains(name)) fail("there is no option --" + name);
      values_[name] = value;
    }
  }

  const std::string& text(const std::string& name) const { return values_.at(name); }
  int number(const std::string& name) const {
    size_t used = 0;
    int value = 0;
    try {
      value = std::stoi(text(name), &used);
    } catch (const std::exception&) {
    }
    if (used == 0 || used != text(name).size()) fail("--" + name + " must be a number, got '" + text(name) + "'");
    return value;
  }
  double real(const std::string& name) const {
    size_t used = 0;
    double value = 0;
    try {
      value = std::stod(text(name), &used);
    } catch (const std::exception&) {
    }
    if (used == 0 || used != text(name).size()) fail("--" + name + " must be a number, got '" + text(name) + "'");
    return value;
  }
  // The option, which must be a folder that is there.
  const std::string& folder(const std::string& name) const {
    if (!std::filesystem::is_directory(text(name))) fail("--" + name + ": there is no folder '" + text(name) + "'");
    return text(name);
  }
  // The option, which must be one of these.
  const std::string& choice(const std::string& name, const std::vector<std::string>& choices) const {
    std::string all;
    for (const std::string& c : choices) {
      if (text(name) == c) return text(name);
      all += (all.empty() ? "" : ", ") + c;
    }
    fail("--" + name + " must be one of " + all + ", got '" + text(name) + "'");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    std::string usage = what + "; options:";
    for (const auto& [name, value] : values_) usage += " --" + name + "=" + value;
    throw std::invalid_argument(usage);
  }
  std::map<std::string, std::string> values_;
};
