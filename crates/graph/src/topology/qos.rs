//! Quality of service as iRobot's files spell it (`rmw_qos_profile_t`), and who may talk to whom
//! under DDS's rule: what a subscriber requests must not exceed what a publisher offers (OMG DDS
//! 1.4, §2.2.3).

use serde::{Deserialize, Serialize};

/// A profile. `system_default` and `unknown` mean what ROS 2's default profile says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Qos {
    /// What is kept for a subscriber that is behind.
    pub history: History,
    /// How many messages that is.
    pub depth: u32,
    /// Whether what is lost on the way is sent again.
    pub reliability: Reliability,
    /// Whether late joiners get what was sent before.
    pub durability: Durability,
    /// How it is known that a publisher lives.
    pub liveliness: Liveliness,
    /// Whether ROS 2's prefixes of topic names are left out on the wire.
    pub avoid_ros_namespace_conventions: bool,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)+
        }

        impl $name {
            /// Every word of the file format.
            pub const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];
        }
    };
}

words! {
    /// History.
    History {
        /// Left to the middleware.
        SystemDefault = "system_default",
        /// The last `depth` messages.
        KeepLast = "keep_last",
        /// All.
        KeepAll = "keep_all",
        /// Not said.
        Unknown = "unknown",
    }
}
words! {
    /// Reliability.
    Reliability {
        /// Left to the middleware.
        SystemDefault = "system_default",
        /// Sent again.
        Reliable = "reliable",
        /// Not sent again.
        BestEffort = "best_effort",
        /// Not said.
        Unknown = "unknown",
    }
}
words! {
    /// Durability.
    Durability {
        /// Left to the middleware.
        SystemDefault = "system_default",
        /// Kept by the publisher for late joiners.
        TransientLocal = "transient_local",
        /// Not kept.
        Volatile = "volatile",
        /// Not said.
        Unknown = "unknown",
    }
}
words! {
    /// Liveliness.
    Liveliness {
        /// Left to the middleware.
        SystemDefault = "system_default",
        /// By the process.
        Automatic = "automatic",
        /// By each publish.
        ManualByTopic = "manual_by_topic",
        /// Not said.
        Unknown = "unknown",
    }
}

impl Default for Qos {
    /// ROS 2's: the last ten, reliable, volatile.
    fn default() -> Self {
        Self {
            history: History::KeepLast,
            depth: 10,
            reliability: Reliability::Reliable,
            durability: Durability::Volatile,
            liveliness: Liveliness::Automatic,
            avoid_ros_namespace_conventions: false,
        }
    }
}

impl Qos {
    /// Whether nothing that is sent may be dropped on the way.
    pub fn is_reliable(&self) -> bool {
        self.reliability != Reliability::BestEffort
    }

    /// Why a subscriber with this profile would get nothing from a publisher with `offered`; none
    /// where it gets all.
    pub fn refuses(&self, offered: &Self) -> Option<&'static str> {
        let reliable = |qos: &Self| qos.reliability == Reliability::Reliable;
        let kept = |qos: &Self| qos.durability == Durability::TransientLocal;
        let manual = |qos: &Self| qos.liveliness == Liveliness::ManualByTopic;
        if reliable(self) && offered.reliability == Reliability::BestEffort {
            Some("it requests reliable, best_effort is offered")
        } else if kept(self) && !kept(offered) {
            Some("it requests transient_local, volatile is offered")
        } else if manual(self) && !manual(offered) {
            Some("it requests manual_by_topic, automatic is offered")
        } else if self.avoid_ros_namespace_conventions != offered.avoid_ros_namespace_conventions {
            Some("only one of the two uses ROS 2's topic names on the wire")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_must_not_request_more_than_is_offered() {
        let default = Qos::default();
        let best_effort = Qos { reliability: Reliability::BestEffort, ..default };
        let kept = Qos { durability: Durability::TransientLocal, ..default };
        let manual = Qos { liveliness: Liveliness::ManualByTopic, ..default };
        for (requested, offered, refused) in [
            (default, default, false),
            (best_effort, default, false),
            (default, best_effort, true),
            (kept, default, true),
            (default, kept, false),
            (manual, default, true),
            (default, manual, false),
        ] {
            assert_eq!(requested.refuses(&offered).is_some(), refused, "{requested:?} of {offered:?}");
        }
    }
}
