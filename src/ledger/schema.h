#pragma once
namespace flyball::ledger {

/// "FLYB": tells our file from any other SQLite database.
constexpr int kApplicationId = 0x464c5942;

/// Migration n brings a file from version n to n + 1. They are only ever added to.
extern const char* const kMigrations[];

}  // namespace flyball::ledger
