#pragma once

namespace runnel {

class Registry;

// The ops of graphs; runnel.cpp calls them.
void register_cond(Registry& r);
void register_custom_gradient(Registry& r);
void register_graph(Registry& r);
void register_while(Registry& r);

}  // namespace runnel
