//! The `accounts` table: one row a task and signal, for manifests with signals.

use powersweep_engine::Account;

crate::rows::table!(Account, crate::columns::Declared::of_fields(Account::FIELDS, "signals"));
