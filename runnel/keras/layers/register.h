#pragma once

namespace runnel::keras {

// Makes every layer class of the library known by name; called once, when a name is first looked up.
void register_layers();

// The families.
void register_core_layers();
void register_image_layers();
void register_recurrent_layers();

}  // namespace runnel::keras
