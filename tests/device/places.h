#pragma once

// Tests that go through all places where values live: the host and two devices of one kind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runnel/op/operand.h"
#include "runnel/ops/state.h"
#include "runnel/ops/variable_slot.h"
#include "tests/device/fake_device.h"

namespace runnel::test {

enum class Place { host, first, second };
inline constexpr Place kPlaces[] = {Place::host, Place::first, Place::second};

inline FakeDevice& second_fake_device() {
  fake_device();  // registers the kernels of the kind
  static auto* device = new FakeDevice("/device:FAKE:1");
  return *device;
}
inline Device& device_at(Place place) {
  if (place == Place::host) return Device::cpu();
  return place == Place::first ? fake_device() : second_fake_device();
}
inline Tensor put(const Tensor& t, Place place) { return t.to(device_at(place)); }

// Where an op with these operands runs: with the first that is not on the host.
inline Place meeting(Place a, Place b) { return a == Place::host ? b : a; }

// What an assignment does not do: the value of a variable goes to another device.
inline void move_variable(const Variable& v, Place to) {
  VariableSlot& slot = v.slot();
  const std::lock_guard lock(slot.mutex);
  slot.value = put(slot.value, to);
  ++slot.version;
}

inline void expect_at(const Tensor& t, Place place, const std::vector<float>& values) {
  EXPECT_EQ(t.device_name(), device_at(place).name());
  EXPECT_EQ(t.to_vector<float>(), values);
}

// Whatever the test did, the devices have their memory back and no error is left on their queues.
class PlacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    first_before_ = fake_device().blocks();
    second_before_ = second_fake_device().blocks();
  }
  void TearDown() override {
    fake_device().hold(false);
    fake_device().synchronize();
    second_fake_device().synchronize();
    EXPECT_EQ(fake_device().blocks(), first_before_);
    EXPECT_EQ(second_fake_device().blocks(), second_before_);
  }

 private:
  size_t first_before_ = 0, second_before_ = 0;
};

// Where a variable lives, and where what it meets does.
struct Places {
  Place variable, argument;
};
inline std::vector<Places> all_places() {
  std::vector<Places> all;
  for (const Place v : kPlaces) {
    for (const Place a : kPlaces) all.push_back({v, a});
  }
  return all;
}
inline std::string places_name(const Places& p) {
  static const char* const names[] = {"Host", "First", "Second"};
  return std::string("Variable") + names[static_cast<int>(p.variable)] + "Argument" +
         names[static_cast<int>(p.argument)];
}

class AllPlacesTest : public PlacesTest, public ::testing::WithParamInterface<Places> {
 protected:
  Place variable() const { return GetParam().variable; }
  Place argument() const { return GetParam().argument; }
  // Of an op on the argument and then the variable.
  Place both() const { return meeting(argument(), variable()); }
  Tensor arg(const Tensor& t) const { return put(t, argument()); }
  Variable var(const Tensor& t) const { return Variable(put(t, variable())); }
};

}  // namespace runnel::test
