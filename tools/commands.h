#pragma once

#include <CLI/CLI.hpp>

namespace runnel::tools {

// Thrown where the program ends with a status of its own and everything has been said.
struct ExitStatus {
  int value;
};

// Each adds one subcommand to the program; its work happens in the subcommand's callback, which reports
// failure by throwing runnel::Error (main prints it as one line).
void add_board(CLI::App& app);
void add_ckpt(CLI::App& app);
void add_data(CLI::App& app);
void add_events(CLI::App& app);
void add_keras(CLI::App& app);
void add_ops(CLI::App& app);
void add_profile(CLI::App& app);
void add_records(CLI::App& app);
void add_version(CLI::App& app);

}  // namespace runnel::tools
