//! The wire: protobuf messages, generated code, conversions
