#include "runnel/base/log.h"

#include <gtest/gtest.h>

#include <string>

namespace runnel {
namespace {

class Log : public testing::Test {
 protected:
  void TearDown() override { set_log_level(before_); }
  template <class F>
  static std::string captured(F&& f) {
    testing::internal::CaptureStderr();
    f();
    return testing::internal::GetCapturedStderr();
  }
  const LogLevel before_ = log_level();
};

TEST_F(Log, LevelsTurnMessagesOffAndOn) {
  set_log_level(LogLevel::silent);
  EXPECT_EQ(captured([] { log_error("x {}", 1); }), "");
  set_log_level(LogLevel::warning);
  EXPECT_EQ(captured([] {
              log_error("x {}", 1);
              log_warning("y");
              log_info("z");
            }),
            "runnel error: x 1\nrunnel warning: y\n");
}

TEST_F(Log, LevelNames) {
  EXPECT_EQ(log_level_from(nullptr), LogLevel::warning);
  EXPECT_EQ(log_level_from("silent"), LogLevel::silent);
  EXPECT_EQ(log_level_from("debug"), LogLevel::debug);
  EXPECT_NE(captured([] { EXPECT_EQ(log_level_from("loud"), LogLevel::warning); }).find("RUNNEL_LOG"),
            std::string::npos);
}

TEST_F(Log, OnceIsOnce) {
  Once once;
  EXPECT_TRUE(once.first());
  EXPECT_FALSE(once.first());
}

}  // namespace
}  // namespace runnel
