#pragma once

// Symbols are hidden unless marked: librunnel.so exports its public API and nothing else.
#define RUNNEL_API __attribute__((visibility("default")))
