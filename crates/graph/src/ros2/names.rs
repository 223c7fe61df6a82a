//! Names of topics and types on the wire, as ROS 2's middleware interface mangles them.

/// A name that ROS 2 does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no {what} `{name}` in ROS 2; expected {expected}")]
pub struct BadName {
    /// What it was to be.
    pub what: &'static str,
    /// What was given.
    pub name: String,
    /// What it would have to look like.
    pub expected: &'static str,
}

/// The DDS topic of a ROS 2 topic: the prefix for topics, then the full name.
pub fn topic_on_wire(topic: &str) -> Result<String, BadName> {
    let full = if topic.starts_with('/') { topic.to_owned() } else { format!("/{topic}") };
    if full.split('/').skip(1).all(is_token) {
        return Ok(format!("rt{full}"));
    }
    let expected = "words of letters, digits and _, none beginning with a digit, between slashes";
    Err(BadName { what: "topic", name: topic.to_owned(), expected })
}

/// The DDS type of a message such as `std_msgs/msg/String`, which may also be written
/// `std_msgs/String`.
pub fn type_on_wire(message: &str) -> Result<String, BadName> {
    let words: Vec<&str> = message.split('/').collect();
    match words[..] {
        [package, name] | [package, "msg", name] if is_token(package) && is_token(name) => {
            Ok(format!("{package}::msg::dds_::{name}_"))
        }
        _ => Err(BadName {
            what: "message type",
            name: message.to_owned(),
            expected: "package/msg/Type, such as std_msgs/msg/String",
        }),
    }
}

fn is_token(word: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '_';
    !word.is_empty() && word.chars().all(letters) && !word.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_ros_2_shows() {
        assert_eq!(topic_on_wire("/t100").unwrap(), "rt/t100");
        assert_eq!(topic_on_wire("arm/joint_states").unwrap(), "rt/arm/joint_states");
        let wire = "irobot_interfaces_plugin::msg::dds_::StampedVector_";
        assert_eq!(type_on_wire("irobot_interfaces_plugin/msg/StampedVector").unwrap(), wire);
        assert_eq!(type_on_wire("irobot_interfaces_plugin/StampedVector").unwrap(), wire);
    }

    #[test]
    fn what_ros_2_refuses_is_refused() {
        for topic in ["", "/", "a//b", "/a/", "/1a", "/a b", "/ä"] {
            assert!(topic_on_wire(topic).is_err(), "{topic}");
        }
        for message in ["String", "std_msgs/srv/Empty", "a/msg/b/c", "/msg/String", "std_msgs/msg/"] {
            assert!(type_on_wire(message).is_err(), "{message}");
        }
    }
}
